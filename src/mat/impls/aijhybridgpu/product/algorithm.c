/*
  Which algorithm of a product was asked for, and whether it is one of ours.
*/
#include "product.h"
#include "aijhybridgpu/private/hybspgemm.h"
#include "aijhybridgpu/private/hybptap.h"

static const struct {
  HybProductType type;
  const char    *option, *man; /* that MatMatMult() and its like read, and their pages */
} products[] = {
  [MATPRODUCT_AB]   = {HYB_PRODUCT_AB,   "-matmatmult_via",          "MatMatMult"         },
  [MATPRODUCT_AtB]  = {HYB_PRODUCT_ATB,  "-mattransposematmult_via", "MatTransposeMatMult"},
  [MATPRODUCT_ABt]  = {HYB_PRODUCT_ABT,  "-matmattransmult_via",     "MatMatTransposeMult"},
  [MATPRODUCT_PtAP] = {HYB_PRODUCT_PTAP, "-matptap_via",             "MatPtAP"            },
  [MATPRODUCT_RARt] = {HYB_PRODUCT_RART, "-matrart_via",             "MatRARt"            },
  [MATPRODUCT_ABC]  = {HYB_PRODUCT_ABC,  "-matmatmatmult_via",       "MatMatMatMult"      }
};

PetscErrorCode HybMatProductType(MatProductType type, HybProductType *t)
{
  PetscFunctionBegin;
  PetscCheck((size_t)type < PETSC_STATIC_ARRAY_LENGTH(products) && products[type].option, PETSC_COMM_SELF, PETSC_ERR_SUP, "MatProductType %s is not a product of sparse matrices", MatProductTypes[type]);
  *t = products[type].type;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const parents[] = {"sorted", "scalable", "scalable_fast", "heap", "btheap", "llcondensed", "hypre", "at*b", "outerproduct", "color", "rap", "r*a*rt", "r*art", "coloring_rart", "nonscalable", "seqmpi", "allatonce", "allatonce_merged", NULL};

/* all names, for -help and for who has given another one */
static PetscErrorCode HybAlgorithmNames(char text[], size_t length)
{
  const char *const *names;

  PetscFunctionBegin;
  PetscCall(HybSpGEMMGetNames(&names));
  PetscCall(PetscStrncpy(text, "(one of) auto", length));
  for (PetscInt n = 0; names[n]; n++) {
    PetscCall(PetscStrlcat(text, " ", length));
    PetscCall(PetscStrlcat(text, names[n], length));
  }
  PetscCall(PetscStrlcat(text, " fused thin backend, or of the parent's:", length));
  for (PetscInt n = 0; parents[n]; n++) {
    PetscCall(PetscStrlcat(text, " ", length));
    PetscCall(PetscStrlcat(text, parents[n], length));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the option says, shown where -help asks for it */
static PetscErrorCode HybAlgorithmOption(Mat C, const char option[], const char man[], const char value[], char given[], size_t length, PetscBool *flg)
{
  char      text[512] = "";
  PetscBool help;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasHelp(((PetscObject)C)->options, &help));
  if (!help) { /* nobody reads the rest */
    PetscCall(PetscOptionsGetString(((PetscObject)C)->options, ((PetscObject)C)->prefix, option, given, length, flg));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscOptionsBegin(PetscObjectComm((PetscObject)C), ((PetscObject)C)->prefix, man, "Mat");
  if (PetscOptionsObject->printhelp) PetscCall(HybAlgorithmNames(text, sizeof(text)));
  PetscCall(PetscOptionsString(option, text, man, value, given, length, flg));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The algorithm of the product: from MatProductSetAlgorithm(), else from the option that the parent would read. Names of
  ours (auto, default, backend, the methods') stay here; names that only the parent knows go to the parent.
*/
PetscErrorCode HybGlueProductAlgorithm(Mat C, PetscBool seq, char method[], size_t length, PetscBool *ours, PetscBool *asked)
{
  Mat_Product       *product = C->product;
  const char *const *names;
  const char        *option, *man, *value;
  char               text[512], given[64];
  PetscBool          flg, known;

  PetscFunctionBegin;
  option = product->api_user ? products[product->type].option : "-mat_product_algorithm";
  man    = products[product->type].man;
  value  = product->alg ? product->alg : "default";
  PetscCall(PetscStrncpy(given, value, sizeof(given)));
  PetscCall(HybAlgorithmOption(C, option, man, value, given, sizeof(given), &flg));
  /* as PetscOptionsEList() does, by which the parent reads it: in any case, and no value is a default */
  if (flg) PetscCall(PetscStrtolower(given));
  if (flg && !given[0]) PetscCall(PetscStrncpy(given, "default", sizeof(given)));
  /* a pattern that is not the product's: of the parallel algorithms some of the parent's know how to make it */
  if (C->force_diagonals && !seq) {
    PetscCall(PetscInfo(C, "MAT_FORCE_DIAGONAL_ENTRIES is set: parallel products with diagonal entries of their own are the parent's\n"));
    *ours  = PETSC_FALSE;
    *asked = PETSC_TRUE;
    PetscCall(PetscStrncpy(method, given, length));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *ours  = PETSC_TRUE;
  *asked = PETSC_TRUE;
  PetscCall(PetscStrcmp(given, "default", &known));
  if (!known) PetscCall(PetscStrcmp(given, "backend", &known));
  if (known) {
    *asked = PETSC_FALSE;
    PetscCall(PetscStrncpy(method, "auto", length));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybSpGEMMGetNames(&names));
  PetscCall(PetscStrcmp(given, "auto", &known));
  if (!known) PetscCall(PetscStrcmp(given, "fused", &known));
  if (!known) PetscCall(PetscStrcmp(given, "thin", &known));
  if (known && product->type != MATPRODUCT_PtAP) PetscCall(PetscStrncpy(given, "auto", sizeof(given)));
  for (PetscInt n = 0; names[n] && !known; n++) PetscCall(PetscStrcmp(given, names[n], &known));
  if (known) {
    PetscCall(PetscStrncpy(method, given, length));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *ours = PETSC_FALSE;
  PetscCall(PetscStrncpy(method, given, length));
  for (PetscInt n = 0; parents[n] && !known; n++) PetscCall(PetscStrcmp(given, parents[n], &known));
  if (!known) PetscCall(HybAlgorithmNames(text, sizeof(text)));
  PetscCheck(known, PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown algorithm \"%s\" for %s%s%s: %s", given, ((PetscObject)C)->prefix ? "-" : "", ((PetscObject)C)->prefix ? ((PetscObject)C)->prefix : "", option, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a method that only the other side has: this side chooses for itself */
const char *HybMatProductMethod(const HybExec *x, const char *method)
{
  for (const HybSpGEMMMethod *const *m = x->backend->spgemm; m && *m; m++)
    if (!strcmp(method, (*m)->name)) return method;
  for (const HybPtAPMethod *const *m = x->backend->ptap; m && *m; m++)
    if (!strcmp(method, (*m)->name)) return method;
  return "auto";
}

/*
  A result of the parent's has the type of one of its operands. Has that one a type derived from AIJ which leaves
  products to AIJ (aijperm, aijsell, aijcrl)? Then so has the result, and the product is the parent's, unless an
  algorithm of ours was named.
*/
PetscErrorCode HybMatProductIsDerived(Mat C, PetscBool seq, PetscBool *derived)
{
  Mat_Product *product = C->product;
  Mat          D       = product->type == MATPRODUCT_RARt || (!seq && product->type == MATPRODUCT_AtB) ? product->B : product->A;
  PetscBool    plain;

  PetscFunctionBegin;
  *derived = PETSC_FALSE;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)D, &plain, MATSEQAIJ, MATMPIAIJ, MATSEQAIJHYBRIDGPU, MATMPIAIJHYBRIDGPU, ""));
  if (plain || MatIsSeqAIJHybridGPU(D)) PetscFunctionReturn(PETSC_SUCCESS);
  /* the parent gives the transpose of B the type of A by MatSetType(), which empties it if B has another one */
  if (seq && product->type == MATPRODUCT_ABt) {
    PetscBool same;

    PetscCall(PetscStrcmp(((PetscObject)product->B)->type_name, ((PetscObject)D)->type_name, &same));
    if (!same) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (seq)
    *derived = (PetscBool)(D->ops->productsetfromoptions == HybGlueState.seq.productsetfromoptions || D->ops->productsetfromoptions == HybGlueState.own.productsetfromoptions);
  else
    *derived = (PetscBool)(D->ops->productsetfromoptions == HybGlueState.mpi.productsetfromoptions);
  if (*derived) PetscCall(PetscInfo(C, "Product %s by the parent, as its result is of type %s\n", MatProductTypes[product->type], ((PetscObject)D)->type_name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscInt HybMatProductBlockSize(PetscInt n, const Mat operand[])
{
  PetscInt bs = 0;

  for (PetscInt k = 0; k < n; k++) {
    PetscInt size[] = {operand[k]->rmap->bs, operand[k]->cmap->bs};

    for (int d = 0; d < 2; d++) {
      PetscInt other = PetscMax(size[d], 1); /* negative: not set */

      while (other) {
        const PetscInt rest = bs % other;

        bs    = other;
        other = rest;
      }
    }
  }
  return bs;
}
