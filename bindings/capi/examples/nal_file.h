/* For the examples: reads a file of H.265 as access units. */
#ifndef NAL_FILE_H
#define NAL_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Octets that were read from a file. */
struct nal_file {
    uint8_t *octets;
    size_t len;
    size_t at;
};

/* Reads a whole file; 0 if it cannot be read. */
static inline int nal_file_open(struct nal_file *file, const char *name) {
    FILE *stream = fopen(name, "rb");
    long end;
    file->octets = NULL;
    file->len = file->at = 0;
    if (!stream) return 0;
    if (fseek(stream, 0, SEEK_END) == 0 && (end = ftell(stream)) > 0) {
        file->len = (size_t)end;
        file->octets = (uint8_t *)malloc(file->len);
        rewind(stream);
        if (file->octets && fread(file->octets, 1, file->len, stream) != file->len) {
            free(file->octets);
            file->octets = NULL;
        }
    }
    fclose(stream);
    return file->octets != NULL;
}

static inline void nal_file_close(struct nal_file *file) { free(file->octets); }

/* The offset of the next start code, from `from` on; the end if there is none. */
static inline size_t nal_start(const struct nal_file *file, size_t from) {
    for (; from + 3 < file->len; from++) {
        if (file->octets[from] == 0 && file->octets[from + 1] == 0 && file->octets[from + 2] == 1) {
            return from > 0 && file->octets[from - 1] == 0 ? from - 1 : from;
        }
    }
    return file->len;
}

/* The next access unit of H.265: up to the next NAL unit that begins one (ITU-T H.265, 7.4.2.4.4).
   0 at the end. */
static inline int nal_file_next(struct nal_file *file, const uint8_t **data, size_t *len) {
    size_t start = nal_start(file, file->at), end = start;
    int has_slice = 0;
    while (end < file->len) {
        size_t header = end + (file->octets[end + 2] == 1 ? 3 : 4);
        int type = header < file->len ? file->octets[header] >> 1 & 63 : 0;
        int is_slice = type < 32;
        int is_first = is_slice && header + 2 < file->len && file->octets[header + 2] >> 7;
        int begins = is_first || (type >= 32 && type <= 35) || type == 39 ||
                     (type >= 41 && type <= 44) || (type >= 48 && type <= 55);
        if (has_slice && begins) break;
        has_slice |= is_slice;
        end = nal_start(file, header);
    }
    *data = file->octets + start;
    *len = end - start;
    file->at = end;
    return end > start;
}

#endif
