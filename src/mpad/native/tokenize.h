/* Text -> word ids: Kim's tokenizer (mpad/text/tokenizer.py) and a word table (mpad/text/vocabulary.py) in one pass. */

enum { SEPARATOR, LETTER, SINGLE, ESCAPED, DOCUMENT, SENTENCE };
static unsigned char kind_of[256];
static unsigned crc_of[256];

static void prepare_tokenizer(void) {
    for (int c = 0; c < 256; c++) {
        unsigned crc = c;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        crc_of[c] = crc;
        const int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '\'' || c == '`';
        kind_of[c] = letter ? LETTER : c == ',' || c == '!' ? SINGLE : c == '(' || c == ')' || c == '?' ? ESCAPED : SEPARATOR;
    }
    kind_of[0] = DOCUMENT, kind_of[1] = SENTENCE;
}

/* CRC-32 as in zlib. */
static unsigned crc32_of(const unsigned char *word, long n) {
    unsigned crc = 0xFFFFFFFFu;
    for (long i = 0; i < n; i++) crc = crc_of[(crc ^ word[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static unsigned hash_of(const unsigned char *word, long n) {
    unsigned hash = 2166136261u;
    for (long i = 0; i < n; i++) hash = (hash ^ word[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* Find the slot of a word, or the empty slot where it belongs. */
static long slot_of(const struct words *args, const unsigned char *word, long n, unsigned hash) {
    long slot = hash & (args->n_slots - 1);
    for (; args->slots[slot]; slot = (slot + 1) & (args->n_slots - 1)) {
        const long k = args->slots[slot] - 1;
        if (args->hash[k] == hash && args->start[k + 1] - args->start[k] == n && !memcmp(args->letters + args->start[k], word, n)) break;
    }
    return slot;
}

/* Enter all words into empty slots; of a duplicate, the last one counts. */
void mpad_index_words(const struct words *args) {
    for (long k = 0; k < args->n; k++) {
        const unsigned char *word = args->letters + args->start[k];
        const long n = args->start[k + 1] - args->start[k];
        args->hash[k] = hash_of(word, n);
        args->slots[slot_of(args, word, n, args->hash[k])] = k + 1;
    }
}

/* Return the id of a word. An unknown word is added or, with `spare` > 0, hashed to one of so many ids after the known
 * ones; -3 if the table is full. */
static long id_of(struct words *args, const unsigned char *word, long n, long spare) {
    const unsigned hash = hash_of(word, n);
    const long slot = slot_of(args, word, n, hash);
    if (args->slots[slot]) return args->slots[slot] - 1;
    if (spare) return args->n + crc32_of(word, n) % spare;
    if (args->n == args->capacity || args->start[args->n] + n > args->letters_capacity) return -3;
    memcpy(args->letters + args->start[args->n], word, n);
    args->hash[args->n] = hash, args->start[args->n + 1] = args->start[args->n] + n;
    args->slots[slot] = ++args->n;
    return args->n - 1;
}

/* Return 1 if a suffix starts here that is a word of its own: 's 've 're 'd 'll n't. */
static int splits(const unsigned char *at, const unsigned char *end) {
    const long left = end - at;
    if (*at == '\'' && left > 1)
        return at[1] == 's' || at[1] == 'd' ||
               (left > 2 && ((at[1] == 'v' && at[2] == 'e') || (at[1] == 'r' && at[2] == 'e') || (at[1] == 'l' && at[2] == 'l')));
    return *at == 'n' && left > 2 && at[1] == '\'' && at[2] == 't';
}

/* Write the ids of the words of a text; -1 ends a document, -2 a sentence. Returns how many; `done` becomes the number of
 * bytes read, fewer than n if the table is full. `word` has room for the longest word. */
long mpad_read_words(struct words *args, const unsigned char *text, long n, int lower, long spare, unsigned char *word, int *to,
                     long *done) {
    const unsigned char *end = text + n, *at = text;
    long count = 0;
    *done = n;
    while (at < end) {
        const unsigned char *begin = at;
        const int kind = kind_of[*at];
        long length = 0, number;
        if (kind == SEPARATOR) {
            at++;
            continue;
        }
        if (kind == DOCUMENT || kind == SENTENCE) {
            to[count++] = kind == DOCUMENT ? -1 : -2, at++;
            continue;
        }
        if (kind == LETTER)
            do {
                const unsigned char c = *at++;
                word[length++] = lower && c >= 'A' && c <= 'Z' ? c + 32 : c;
            } while (at < end && kind_of[*at] == LETTER && !splits(at, end));
        else {
            if (kind == ESCAPED) word[length++] = '\\';
            word[length++] = *at++;
        }
        number = id_of(args, word, length, spare);
        if (number == -3) {
            *done = begin - text;
            break;
        }
        to[count++] = number;
    }
    return count;
}

/* Split words into known pieces, longest match first: ids in `to`, and the number of pieces per word, 0 if a word cannot be
 * split. A piece inside a word is looked up with the prefix `before`; `scratch` has room for it and the longest word. */
void mpad_word_pieces(const struct words *args, const unsigned char *letters, const long *start, long n,
                      const unsigned char *before, long n_before, unsigned char *scratch, int *to, long *count) {
    long n_pieces = 0;
    memcpy(scratch, before, n_before);
    for (long k = 0; k < n; k++) {
        const unsigned char *at = letters + start[k], *end = letters + start[k + 1];
        const long first = n_pieces;
        while (at < end) {
            const int continues = at > letters + start[k];
            const unsigned char *piece = continues ? scratch : at, *last = end;
            long slot = 0;
            if (continues) memcpy(scratch + n_before, at, end - at);
            for (; last > at; last--) {
                if (last < end && (*last & 0xC0) == 0x80) continue; /* inside a UTF-8 character */
                const long size = last - at + (continues ? n_before : 0);
                if ((slot = args->slots[slot_of(args, piece, size, hash_of(piece, size))])) break;
            }
            if (!slot) {
                n_pieces = first;
                break;
            }
            to[n_pieces++] = slot - 1, at = last;
        }
        count[k] = n_pieces - first;
    }
}
