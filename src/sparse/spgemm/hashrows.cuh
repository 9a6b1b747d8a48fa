/*
  hashrows.cuh: rows of C = A*B by tables in shared memory, for the methods that need them: "hash" for all rows, others
  for the rows that they leave over. The algorithm is described in hashrows.cu.
*/
#ifndef AIJHYBRIDGPU_HASHROWS_CUH
#define AIJHYBRIDGPU_HASHROWS_CUH
#include "../device/hybdevice.cuh"
#include "aijhybridgpu/private/hybspgemm.h"

#define HYB_HASH_BINS 11

/* The terms of all entries of C (terms.cu), by tiles of entries of C. A term is one word of 16 bits or two: its entry
   of A, from the tile's first one on, and above that which entry of the row of B. */
typedef struct {
  unsigned short *term;        /* NULL: there are none */
  char           *room;        /* all else */
  PetscCount     *ptr;         /* of each tile: its first word */
  PetscInt       *from, *base; /* of each entry of A: where its row of B begins; of each tile: its first entry of A */
  void           *length;      /* terms of each entry of C: two bytes each, or */
  int             bytelength;  /* one, where no row of A has more than 255 entries */
  unsigned char  *form;        /* of each tile */
} HybHashTerms;

/* The plan of the rows; all zero before HybHashRowsCount() */
typedef struct {
  PetscInt *order, *binptr; /* device: rows by the size of their tables */
  unsigned *base, *size;    /* device: the table of each row */
  /* device: nnz(C), its longest row, whether there are rows without a list, then binptr, then what the caller puts into
     own, if he says so: one copy brings all */
  PetscCount *head, *own;
  void       *pairs; /* compressed B, while the symbolic phase runs, or NULL */
  PetscInt   *npairs;
  void       *list; /* the blocks of rows of C, while the symbolic phase runs, or NULL */
  unsigned   *where, *listed;
  PetscCount  room, unlisted; /* of each part; 0: all rows have one */
  int         nown;           /* numbers in own */
  PetscCount  brought[HYB_SPGEMM_PARTS + 3];
  PetscInt    hostbinptr[HYB_HASH_BINS + 1];
  PetscInt    longest;          /* row of C */
  PetscInt    maxbytes;         /* of shared memory a block */
  PetscCount  words;            /* blocks of 32 columns of C */
  PetscCount  mean;             /* length of the rows of B met */
  int         lanes, pairlanes; /* log2 of the lanes across a row of B: additions, unordered insertions */
  int         multiprocessors;
  /* the plan of numeric phases, where there is one */
  /* of A's entries: where the row of B begins, then which of the row's products is the first; rows by the length of
     C's, with their bins */
  PetscInt       *from, *planorder;
  PetscCount     *placeptr;
  unsigned short *places;
  HybHashTerms    terms;
} HybHashRows;

/* count[r] = nonzeros of row r for each row with upper[r] > 0, its number of products (mm->rowproducts, or that with
   zeros where a row is not ours); other rows are left alone in this and in all later calls, and their counts are the
   caller's; count NULL: all rows are ours. offsets: those of all counts (m+1); their total goes to *hash->head. No
   synchronisation. */
extern PetscErrorCode HybHashRowsCount(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool compress, const PetscCount *upper, PetscInt *count, HybHashRows *hash, PetscInt *offsets);
/* brings *hash->head, nnz(C), and the bins to the host: one synchronisation */
extern PetscErrorCode HybHashRowsFetch(HybSpGEMM *mm, HybHashRows *hash, PetscCount *nnz);
/* columns of rows whose blocks are listed; gives back what is not needed any more, for C->a is better allocated after
   this. C->i is set. HybHashRowsFill() follows, which calls it if nobody has. */
extern PetscErrorCode HybHashRowsColumns(HybSpGEMM *mm, HybHashRows *hash, HybCSR *C);
/* columns, and values where C->a is there. C->i is set. */
extern PetscErrorCode HybHashRowsFill(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, HybCSR *C);
/* values, C->i and C->j known */
extern PetscErrorCode HybHashRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C);

/* The terms of each entry of C, for later numeric phases, or where each product goes: 2 bytes a product and 8 an entry
   of A; not of rows that have no table in shared memory. Leaves hash->terms.term or hash->places NULL where that would
   take too much memory. */
extern PetscErrorCode HybHashRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C);
/* and gives that back */
extern PetscErrorCode HybHashRowsUnplan(HybSpGEMM *mm, HybHashRows *hash);
/* values by places, or by terms */
extern PetscErrorCode HybHashTermsSums(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C);
extern PetscErrorCode HybHashRowsPlanned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C);

#endif
