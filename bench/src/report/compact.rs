//! Compaction of SVG: dashed lines are drawn as hundreds of short ones, two thirds of a report.

/// Joins consecutive lines of one style into one path, and omits default attributes.
pub(super) fn compact(svg: &str) -> String {
    let mut text = String::with_capacity(svg.len());
    // The style of the path that is open at the end of `text`.
    let mut open: Option<&str> = None;
    for line in svg.lines() {
        let dash = polyline(line);
        if open.is_some() && open != dash.map(|(style, _)| style) {
            text.push_str("\"/>\n");
            open = None;
        }
        let Some((style, points)) = dash else {
            text.push_str(&without_defaults(line));
            text.push('\n');
            continue;
        };
        if open.is_none() {
            text.push_str("<path");
            text.push_str(&without_defaults(style));
            text.push_str(" d=\"");
            open = Some(style);
        }
        // After the first point, more points are joined by lines without a letter.
        text.push('M');
        text.push_str(points.trim());
    }
    if open.is_some() {
        text.push_str("\"/>\n");
    }
    text
}

/// Returns an element without attributes that change nothing: full opacity, and no stroke with its width.
fn without_defaults(element: &str) -> String {
    let text = element.replace(" opacity=\"1\"", "");
    let Some((before, after)) = text.split_once(" stroke=\"none\"") else { return text };
    let width = after.strip_prefix(" stroke-width=\"").and_then(|it| it.split_once('"'));
    format!("{before}{}", width.map_or(after, |(_, rest)| rest))
}

/// Returns the style of a line, and its points.
fn polyline(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim().strip_prefix("<polyline")?.strip_suffix("\"/>")?;
    rest.split_once(" points=\"")
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn dashes_of_one_style_become_one_path() {
        let line = |colour: &str, points: &str| {
            format!(
                "<polyline fill=\"none\" opacity=\"1\" stroke=\"{colour}\" points=\"{points}\"/>\n"
            )
        };
        let svg = [
            "<svg>\n".to_owned(),
            line("red", "1,2 3,4 "),
            line("red", "5,6 7,8 9,10 "),
            line("blue", "1,1 2,2 "),
            "<circle opacity=\"1\" r=\"3\" stroke=\"none\" stroke-width=\"2\"/>\n".to_owned(),
            "<rect stroke=\"none\"/>\n".to_owned(),
            line("blue", "3,3 4,4 "),
            "</svg>\n".to_owned(),
        ];
        let expected = "<svg>\n\
            <path fill=\"none\" stroke=\"red\" d=\"M1,2 3,4M5,6 7,8 9,10\"/>\n\
            <path fill=\"none\" stroke=\"blue\" d=\"M1,1 2,2\"/>\n\
            <circle r=\"3\"/>\n\
            <rect/>\n\
            <path fill=\"none\" stroke=\"blue\" d=\"M3,3 4,4\"/>\n\
            </svg>\n";
        assert_eq!(compact(&svg.concat()), expected);
    }
}
