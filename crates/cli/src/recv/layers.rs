//! The frames of each temporal layer.

use rushes::payload::Layers;

/// The number of frames of each temporal layer, of which all formats have at most eight.
#[derive(Debug, Default)]
pub(super) struct LayerCounts([u64; 8]);

impl LayerCounts {
    pub(super) fn count(&mut self, layers: Layers) {
        let last = self.0.len() - 1;
        self.0[usize::from(layers.temporal_id).min(last)] += 1;
    }

    /// Returns the number of frames of each layer, the base first; empty if no frame told its layer.
    pub(super) fn list(&self) -> &[u64] {
        let len = self.0.iter().rposition(|frames| *frames > 0).map_or(0, |last| last + 1);
        &self.0[..len]
    }

    /// Returns the list as a text, if there are several layers.
    pub(super) fn text(&self) -> Option<String> {
        let layers = self.list().iter().enumerate();
        let texts: Vec<_> = layers.map(|(id, frames)| format!("{id}: {frames}")).collect();
        (texts.len() > 1).then(|| texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_layers_are_worth_a_line() {
        let mut counts = LayerCounts::default();
        let layers = |temporal_id| Layers {
            temporal_id,
            spatial_id: 0,
            begins_layer: false,
            begins_higher: false,
            needs_earlier: false,
        };
        assert!(counts.list().is_empty());
        counts.count(layers(0));
        assert_eq!((counts.list(), counts.text()), (&[1][..], None));
        counts.count(layers(2));
        counts.count(layers(99));
        assert_eq!(counts.list(), [1, 0, 1, 0, 0, 0, 0, 1]);
        assert!(counts.text().is_some_and(|text| text.starts_with("0: 1, 1: 0, 2: 1")));
    }
}
