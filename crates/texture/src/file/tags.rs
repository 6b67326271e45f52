//! The comments in which Y4M files say the colours that the format has no field for.

use crate::colour::{Colour, ColourHint, Matrix, Siting};
use crate::format::Format;
use crate::layout::Layout;

/// The tag in which the writer names matrix and siting, which the format cannot say.
pub(super) const MATRIX: &str = "RUSHES";

/// The tag of curve and primaries, and of matrix and siting where these are not usual with them. FFmpeg reads no
/// header of more than 96 octets, so that a letter stands for the siting, and what is usual is left out.
pub(super) const CURVE: &str = "RUSHES_C";

/// Parses the tag of matrix and siting.
pub(super) fn matrix(value: &str) -> Option<(Matrix, Siting)> {
    let (matrix, siting) = value.split_once(',')?;
    Some((matrix.parse().ok()?, siting_of(siting)?))
}

/// Parses the tag of curve and primaries, which matrix and siting may follow.
pub(super) fn curve(value: &str) -> Option<(ColourHint, Option<Siting>)> {
    let mut values = value.split(',');
    let colour = ColourHint {
        transfer: Some(values.next()?.parse().ok()?),
        primaries: Some(values.next()?.parse().ok()?),
        ..ColourHint::default()
    };
    let matrix = values.next().filter(|name| !name.is_empty());
    let matrix = matrix.map(str::parse).transpose().ok()?;
    let siting = match values.next() {
        Some(letter) => Some(SITINGS.iter().find(|(_, name)| name[..1] == *letter)?.0),
        None => None,
    };
    values.next().is_none().then_some((ColourHint { matrix, ..colour }, siting))
}

/// Returns the tags of what a reader would not guess.
pub(super) fn written(layout: &Layout) -> String {
    let colour = layout.colour();
    let usual = |hint| Colour::of_file(layout.height(), hint);
    let siting = name_of(colour.siting);
    let is_sited = layout.format() == Format::Yuv422 && colour.siting != Siting::Left;
    let Colour { matrix, transfer, primaries, .. } = colour;
    let of_matrix = usual(ColourHint { matrix: Some(matrix), ..ColourHint::default() });
    if (transfer, primaries) == (of_matrix.transfer, of_matrix.primaries) {
        let is_usual = matrix == usual(ColourHint::default()).matrix && !is_sited;
        return if is_usual { String::new() } else { format!(" X{MATRIX}={matrix},{siting}") };
    }
    let mut tag = format!(" X{CURVE}={transfer},{primaries}");
    let of_curve = usual(ColourHint { matrix: None, ..colour.into() });
    let is_usual = matrix == of_curve.matrix;
    if is_sited || !is_usual {
        tag += ",";
        tag += if is_usual { "" } else { matrix.name() };
    }
    if is_sited {
        tag += ",";
        tag += &siting[..1];
    }
    tag
}

const SITINGS: [(Siting, &str); 3] =
    [(Siting::Left, "left"), (Siting::Centre, "centre"), (Siting::TopLeft, "topleft")];

fn siting_of(name: &str) -> Option<Siting> {
    SITINGS.iter().find(|(_, known)| *known == name).map(|&(siting, _)| siting)
}

fn name_of(siting: Siting) -> &'static str {
    SITINGS.iter().find(|&&(known, _)| known == siting).map_or("", |&(_, name)| name)
}
