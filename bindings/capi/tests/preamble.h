/*
 * Rushes: video and audio between machines in real time.
 *
 * Handles. What is made by a ..._new, ..._open, ..._begin, _serve or _connect is a handle, to be
 * closed once by its own function. A handle is a number in the clothes of a pointer: closing it
 * twice, using it afterwards or passing another kind is an error code, never a wrong access.
 * Frames are handles, too: lent by the stream until rushes_frame_release().
 *
 * Outcomes. Functions return a rushes_status: RUSHES_OK (0), RUSHES_TIMEOUT (1) where nothing came,
 * or an error below 0, of which rushes_last_error_message() says more on the same thread. Answers
 * go to the place that an argument points to, and are written on RUSHES_OK only; handles there are
 * NULL otherwise.
 *
 * Memory. Arguments are lent for the call, also texts (UTF-8, ending with a zero octet) and hooks'
 * arguments, unless a function says otherwise. Structs may grow at their end in later versions: who
 * fills them is told their size as the caller knows it, and sets what it does not know of to 0. Those
 * that lie in arrays or in other structs (rushes_part, rushes_report_block, rushes_sdes_text,
 * rushes_packet_arrival) stay as they are.
 *
 * Times are in nanoseconds, lengths in octets.
 *
 * Threads. Every function may be called from any thread at any time; what excludes each other waits
 * or is RUSHES_ERROR_BUSY, as the function says. Hooks may call functions, as theirs say. An
 * exception thrown from a hook ends the process. After fork() a child must not use handles.
 *
 * Made by cbindgen from bindings/capi/src; do not edit (see bindings/capi/tests/header.rs).
 */
