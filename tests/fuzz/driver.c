/*
  Where the compiler brings no libFuzzer: random inputs for so many seconds. fuzz SECONDS [SEED], or fuzz FILE to repeat
  one input. An input that ends the program is left in fuzz-input.
*/
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state;

static unsigned Random(void)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 40);
}

int main(int argc, char **argv)
{
  static uint8_t data[8192];
  const char    *last    = "fuzz-input";
  const double   seconds = argc > 1 ? atof(argv[1]) : 30;
  const time_t   start   = time(NULL);
  long           runs    = 0;
  FILE          *f;

  (void)LLVMFuzzerInitialize(&argc, &argv);
  f = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (f) {
    const size_t n = fread(data, 1, sizeof(data), f);

    fclose(f);
    return LLVMFuzzerTestOneInput(data, n);
  }
  state = argc > 2 ? (uint64_t)strtoull(argv[2], NULL, 10) : 1;
  for (; difftime(time(NULL), start) < seconds; runs++) {
    /* many small ones, some long ones; some with many zeros or many ones, which are the matrices with structure */
    const size_t   n   = Random() % (1u << (4 + Random() % 10));
    const unsigned mix = Random() % 4;

    for (size_t k = 0; k < n; k++) {
      const unsigned r = Random() & 255;

      data[k] = (uint8_t)(k == 0 || mix < 2 || Random() % 4 == 0 ? r : (mix == 2 ? 0 : 255));
    }
    f = fopen(last, "wb");
    if (f) {
      fwrite(data, 1, n, f);
      fclose(f);
    }
    LLVMFuzzerTestOneInput(data, n);
  }
  remove(last);
  printf("%ld inputs\n1 passed, 0 failed, 0 skipped\n", runs);
  return 0;
}
