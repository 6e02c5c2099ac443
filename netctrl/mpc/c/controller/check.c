/* Written by netctrl: compares @NAME@, sample by sample, with the course in a file. */
#include "@NAME@.h"

#include <math.h>
#include <stdio.h>

enum { M = @INPUTS@, N = @MEASURED@ + @AHEAD@ * (@REFERENCES@ + @DISTURBANCES@) };

static const double allowed[M] = {@ALLOWED@}; /* largest difference of each input */
static const double first[M] = {@FIRST@};

int main(int argc, char **argv)
{
    struct @NAME@_state state;
    double given[N], expected[M], u[M], worst = 0.0;
    long lines = 0, wrong = 0;
    FILE *file = fopen(argc > 1 ? argv[1] : "vectors.txt", "r");

    if (file == NULL) {
        perror("vectors");
        return 2;
    }
    @NAME@_start(&state, first);
    for (;;) {
        int code = 0, read = 0, differs;
        const double *references = given + @MEASURED@;
        for (int i = 0; i < N; i++)
            read += fscanf(file, "%lf", &given[i]) == 1;
        read += fscanf(file, "%d", &code) == 1;
        for (int j = 0; j < M; j++)
            read += fscanf(file, "%lf", &expected[j]) == 1;
        if (read < N + 1 + M)
            break;
        differs = @NAME@(&state, given, references, references + @AHEAD@ * @REFERENCES@, u) != code;
        for (int j = 0; j < M && !differs; j++) {
            double far = fabs(u[j] - expected[j]) / allowed[j];
            worst = far > worst ? far : worst;
            differs = !(far <= 1.0);
        }
        @NAME@_applied(&state, expected); /* as a law of its own may be unstable */
        wrong += differs;
        lines++;
    }
    fclose(file);
    printf("%ld samples, %ld wrong, largest difference %.3g of what is allowed\n", lines, wrong, worst);
    return wrong > 0 || lines == 0;
}
