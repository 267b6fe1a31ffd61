#include "postgresql.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

// Each function: type, name, parameters, arguments.
#define FUNCTIONS(F) \
    F(int, PQbackendPID, (const PGconn * c), (c)) \
    F(char *, PQcmdTuples, (PGresult * r), (r)) \
    F(PGconn *, PQconnectStartParams, (const char *const *k, const char *const *v, int e), (k, v, e)) \
    F(PQconninfoOption *, PQconninfoParse, (const char *s, char **e), (s, e)) \
    F(int, PQconnectionNeedsPassword, (const PGconn *c), (c)) \
    F(int, PQconsumeInput, (PGconn * c), (c)) \
    F(int, PQenterPipelineMode, (PGconn * c), (c)) \
    F(char *, PQerrorMessage, (const PGconn *c), (c)) \
    F(int, PQflush, (PGconn * c), (c)) \
    F(PGresult *, PQgetResult, (PGconn * c), (c)) \
    F(int, PQgetisnull, (const PGresult *r, int row, int column), (r, row, column)) \
    F(int, PQgetlength, (const PGresult *r, int row, int column), (r, row, column)) \
    F(char *, PQgetvalue, (const PGresult *r, int row, int column), (r, row, column)) \
    F(char *, PQhost, (const PGconn *c), (c)) \
    F(int, PQisBusy, (PGconn * c), (c)) \
    F(PGnotify *, PQnotifies, (PGconn * c), (c)) \
    F(int, PQntuples, (const PGresult *r), (r)) \
    F(int, PQpipelineSync, (PGconn * c), (c)) \
    F(char *, PQresultErrorField, (const PGresult *r, int field), (r, field)) \
    F(ExecStatusType, PQresultStatus, (const PGresult *r), (r)) \
    F(int, PQsendPrepare, (PGconn * c, const char *s, const char *q, int n, const Oid *t), (c, s, q, n, t)) \
    F(int, PQsendQuery, (PGconn * c, const char *q), (c, q)) \
    F(int, PQsendQueryPrepared, \
      (PGconn * c, const char *s, int n, const char *const *v, const int *l, const int *f, int b), \
      (c, s, n, v, l, f, b)) \
    F(int, PQserverVersion, (const PGconn *c), (c)) \
    F(PGVerbosity, PQsetErrorVerbosity, (PGconn * c, PGVerbosity v), (c, v)) \
    F(PQnoticeProcessor, PQsetNoticeProcessor, (PGconn * c, PQnoticeProcessor p, void *a), (c, p, a)) \
    F(int, PQsetnonblocking, (PGconn * c, int n), (c, n)) \
    F(int, PQsocket, (const PGconn *c), (c)) \
    F(ConnStatusType, PQstatus, (const PGconn *c), (c))
#define PROCEDURES(F) \
    F(PQclear, (PGresult * r), (r)) \
    F(PQconninfoFree, (PQconninfoOption * o), (o)) \
    F(PQfreemem, (void *memory), (memory)) \
    F(PQfinish, (PGconn * c), (c)) \
    F(PQreset, (PGconn * c), (c))

#define FUNCTION(type, name, parameters, arguments) \
    static type(*libpq_##name) parameters; \
    type name parameters { return libpq_##name arguments; }
#define PROCEDURE(name, parameters, arguments) \
    static void(*libpq_##name) parameters; \
    void name parameters { libpq_##name arguments; }
FUNCTIONS(FUNCTION)
PROCEDURES(PROCEDURE)

static const char *failure;

static void load(void) {
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
#define FIND(name) \
    if (library != NULL && (*(void **)&libpq_##name = dlsym(library, #name)) == NULL) library = NULL;
#define FIND_FUNCTION(type, name, parameters, arguments) FIND(name)
#define FIND_PROCEDURE(name, parameters, arguments) FIND(name)
    FUNCTIONS(FIND_FUNCTION)
    PROCEDURES(FIND_PROCEDURE)
    if (library == NULL) failure = dlerror();
}

const char *deferd_load_libpq(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return failure;
}
