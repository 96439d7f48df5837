/* Text -> numbers of words: Kim's tokenizer (text/tokenizer.py) and a table of words (text/vocabulary.py), in one pass. */

enum { APART, LETTER, ALONE, ESCAPED, DOCUMENT, SENTENCE };
static unsigned char kind_of[256];
static unsigned crc_of[256];

static void prepare_reading(void) {
    for (int c = 0; c < 256; c++) {
        unsigned crc = c;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        crc_of[c] = crc;
        const int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '\'' || c == '`';
        kind_of[c] = letter ? LETTER : c == ',' || c == '!' ? ALONE : c == '(' || c == ')' || c == '?' ? ESCAPED : APART;
    }
    kind_of[0] = DOCUMENT, kind_of[1] = SENTENCE;
}

/* As zlib has it. */
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

/* The slot where a word is, or where it would be. */
static long slot_of(const struct words *of, const unsigned char *word, long n, unsigned hash) {
    long slot = hash & (of->n_slots - 1);
    for (; of->slots[slot]; slot = (slot + 1) & (of->n_slots - 1)) {
        const long k = of->slots[slot] - 1;
        if (of->hash[k] == hash && of->start[k + 1] - of->start[k] == n && !memcmp(of->letters + of->start[k], word, n)) break;
    }
    return slot;
}

/* Put all words into the slots, which are empty; of a word that is there twice, the last one counts. */
void mpad_index_words(const struct words *of) {
    for (long k = 0; k < of->n; k++) {
        const unsigned char *word = of->letters + of->start[k];
        const long n = of->start[k + 1] - of->start[k];
        of->hash[k] = hash_of(word, n);
        of->slots[slot_of(of, word, n, of->hash[k])] = k + 1;
    }
}

/* The number of a word. One that is not there is added, or, with `spare` rows behind the known ones, gets one of those; -3
 * if there is no room. */
static long number_of(struct words *of, const unsigned char *word, long n, long spare) {
    const unsigned hash = hash_of(word, n);
    const long slot = slot_of(of, word, n, hash);
    if (of->slots[slot]) return of->slots[slot] - 1;
    if (spare) return of->n + crc32_of(word, n) % spare;
    if (of->n == of->capacity || of->start[of->n] + n > of->letters_capacity) return -3;
    memcpy(of->letters + of->start[of->n], word, n);
    of->hash[of->n] = hash, of->start[of->n + 1] = of->start[of->n] + n;
    of->slots[slot] = ++of->n;
    return of->n - 1;
}

/* Whether a new word begins here though no space stands before it: 's 've 're 'd 'll n't. */
static int splits(const unsigned char *at, const unsigned char *end) {
    const long left = end - at;
    if (*at == '\'' && left > 1)
        return at[1] == 's' || at[1] == 'd' ||
               (left > 2 && ((at[1] == 'v' && at[2] == 'e') || (at[1] == 'r' && at[2] == 'e') || (at[1] == 'l' && at[2] == 'l')));
    return *at == 'n' && left > 2 && at[1] == '\'' && at[2] == 't';
}

/* Numbers of the words of a text; -1 where a document ends, -2 where a sentence does. Gives how many they are, and in `done`
 * how much of the text was read: less than all of it where there was no room for a new word. `word` has room for the
 * longest. */
long mpad_read_words(struct words *of, const unsigned char *text, long n, int lower, long spare, unsigned char *word, int *to,
                     long *done) {
    const unsigned char *end = text + n, *at = text;
    long count = 0;
    *done = n;
    while (at < end) {
        const unsigned char *begin = at;
        const int kind = kind_of[*at];
        long length = 0, number;
        if (kind == APART) {
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
        number = number_of(of, word, length, spare);
        if (number == -3) {
            *done = begin - text;
            break;
        }
        to[count++] = number;
    }
    return count;
}

/* Numbers of the pieces of words, the longest first, end to end in `to`, and how many each word has: 0 where it cannot be put
 * together. A piece that goes on a word is looked up with `before` in front of it; `scratch` holds it and the longest word. */
void mpad_word_pieces(const struct words *of, const unsigned char *letters, const long *start, long n,
                      const unsigned char *before, long n_before, unsigned char *scratch, int *to, long *count) {
    long made = 0;
    memcpy(scratch, before, n_before);
    for (long k = 0; k < n; k++) {
        const unsigned char *at = letters + start[k], *end = letters + start[k + 1];
        const long first = made;
        while (at < end) {
            const int goes_on = at > letters + start[k];
            const unsigned char *piece = goes_on ? scratch : at, *last = end;
            long found = 0;
            if (goes_on) memcpy(scratch + n_before, at, end - at);
            for (; last > at; last--) {
                if (last < end && (*last & 0xC0) == 0x80) continue; /* within a letter */
                const long size = last - at + (goes_on ? n_before : 0);
                if ((found = of->slots[slot_of(of, piece, size, hash_of(piece, size))])) break;
            }
            if (!found) {
                made = first;
                break;
            }
            to[made++] = found - 1, at = last;
        }
        count[k] = made - first;
    }
}
