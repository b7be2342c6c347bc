/* Yardstick of the direct sum: softmax sums in three dimensions by hand-written AVX-512 intrinsics, double precision.

   Targets lie in the vector lanes, four vectors at a time; one source after the other is broadcast to them. Scores,
   exponentials and running sums stay in registers: nothing but the sources is read and nothing is written inside. */

#include <immintrin.h>

enum { VECTORS = 4, LANES = 8 * VECTORS, SOURCE = 8 };

/* Chebyshev interpolation of 2^f on [-1/2, 1/2], highest power first: relative error 2e-16, as in pde_solver. */
static const double COEFFICIENTS[11] = {
    7.072585949269223e-09, 1.0208690299958306e-07, 1.321544258792169e-06, 1.5252657260200837e-05,
    0.0001540353044173605, 0.0013333558230164974, 0.009618129107606888, 0.05550410866444772,
    0.24022650695910097, 0.69314718055995, 1.0,
};

static inline __m512d exp2_of(__m512d s) {
    const __m512d whole = _mm512_roundscale_pd(s, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512d f = _mm512_sub_pd(s, whole);
    __m512d power = _mm512_set1_pd(COEFFICIENTS[0]);
    for (int i = 1; i < 11; i++) power = _mm512_fmadd_pd(power, f, _mm512_set1_pd(COEFFICIENTS[i]));
    return _mm512_scalef_pd(power, whole);
}

/* sums[c][i] = sum_j 2^(<q_i, k_j> - shift_i) (w_j, w_j y_j)_c.

   targets: a multiple of LANES; queries: [3][targets] in units of log 2; shift: [targets];
   packed: [sources][SOURCE] the numbers k (3), w, w y (3) and one unused; sums: [4][targets]. */
void yardstick(long targets, long sources, const double *queries, const double *shift, const double *packed,
               double *sums) {
    for (long i = 0; i < targets; i += LANES) {
        __m512d q[3][VECTORS], below[VECTORS], sum[4][VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            for (int a = 0; a < 3; a++) q[a][v] = _mm512_loadu_pd(queries + a * targets + i + 8 * v);
            below[v] = _mm512_sub_pd(_mm512_setzero_pd(), _mm512_loadu_pd(shift + i + 8 * v));
            for (int c = 0; c < 4; c++) sum[c][v] = _mm512_setzero_pd();
        }
        for (long j = 0; j < sources; j++) {
            const double *source = packed + SOURCE * j;
            for (int v = 0; v < VECTORS; v++) {
                __m512d score = below[v];
                for (int a = 0; a < 3; a++) score = _mm512_fmadd_pd(q[a][v], _mm512_set1_pd(source[a]), score);
                const __m512d power = exp2_of(score);
                for (int c = 0; c < 4; c++)
                    sum[c][v] = _mm512_fmadd_pd(power, _mm512_set1_pd(source[3 + c]), sum[c][v]);
            }
        }
        for (int v = 0; v < VECTORS; v++)
            for (int c = 0; c < 4; c++) _mm512_storeu_pd(sums + c * targets + i + 8 * v, sum[c][v]);
    }
}
