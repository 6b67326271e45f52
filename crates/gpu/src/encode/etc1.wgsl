// ETC1 alone.

fn nearest(red: Rows, green: Rows, blue: Rows) -> Cut {
    return etc1(red, green, blue);
}
