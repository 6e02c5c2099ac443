/* Written by netctrl: compares @NAME@ with the test vectors in a file. */
#include "@NAME@.h"

#include <math.h>
#include <stdio.h>

enum { Q = @PARAMETERS@, M = @INPUTS@ };

static const double allowed[M] = {@ALLOWED@}; /* largest difference of each input */

@CALL@
int main(int argc, char **argv)
{
    double theta[Q], expected[M], u[M], worst = 0.0;
    long lines = 0, wrong = 0;
    FILE *file = fopen(argc > 1 ? argv[1] : "vectors.txt", "r");

    if (file == NULL) {
        perror("vectors");
        return 2;
    }
    for (;;) {
        int status = 0, read = 0, differs;
        for (int i = 0; i < Q; i++)
            read += fscanf(file, "%lf", &theta[i]) == 1;
        read += fscanf(file, "%d", &status) == 1;
        for (int j = 0; j < M; j++)
            read += fscanf(file, "%lf", &expected[j]) == 1;
        if (read < Q + 1 + M)
            break;
        differs = call(theta, u) != status;
        for (int j = 0; j < M && status == 0 && !differs; j++) {
            double far = fabs(u[j] - expected[j]) / allowed[j];
            worst = far > worst ? far : worst;
            differs = !(far <= 1.0);
        }
        wrong += differs;
        lines++;
    }
    fclose(file);
    printf("%ld vectors, %ld wrong, largest difference %.3g of what is allowed\n", lines, wrong, worst);
    return wrong > 0 || lines == 0;
}
