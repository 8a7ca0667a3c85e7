// SPDX-License-Identifier: Apache-2.0
#include "metal/runtime.h"

#include "metal/classes.h"
#include "metal/send.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Selectors are compared by address. The mark tells one from an object, which begins with a
// pointer.
struct selector_t {
    uint64_t mark;
    char *name;
    sel_t next;
    atomic_uint_fast64_t sent;
    void (*_Atomic when)(void); // it is sent next; NULL: nothing
};

// The dead whose memory is kept, the latest ones.
enum { GRAVES = 4096 };

static const uint64_t MARK = 0x726f7463656c6573; // `selector`

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what is below, up to the counters
static sel_t selectors[256];
static class_t *classes;
static object_t *graves[GRAVES];
static unsigned grave_next;

static atomic_uint_fast64_t messages;
static atomic_uint_fast64_t rule_counts[RULES_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned selector_hash(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % 256;
}

sel_t sel_registerName(const char *name)
{
    unsigned at = selector_hash(name);
    pthread_mutex_lock(&lock);
    sel_t found = selectors[at];
    while (found && strcmp(found->name, name) != 0) found = found->next;
    if (!found) {
        struct selector_t *made = make(sizeof *made);
        made->mark = MARK;
        made->name = strdup(name);
        made->next = selectors[at];
        selectors[at] = found = made;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

const char *sel_getName(sel_t selector)
{
    return selector ? selector->name : "<no selector>";
}

void class_add(class_t *class)
{
    for (method_t *m = class->methods; m && m->name; m++) m->selector = sel_registerName(m->name);
    pthread_mutex_lock(&lock);
    class->next = classes;
    classes = class;
    pthread_mutex_unlock(&lock);
}

void class_add_meta(class_t *class, class_t *meta)
{
    for (method_t *m = meta->methods; m && m->name; m++) m->selector = sel_registerName(m->name);
    class->object.isa = meta;
    class_add(class);
}

static void say_leaks(void)
{
    for (class_t *c = classes; c; c = c->next)
        if (c->live) complain("%u objects of %s are alive at exit", c->live, c->name);
}

static void start(void)
{
    classes_add();
    if (settings()->leaks) atexit(say_leaks);
}

// A selector or a class that the settings take away.
static bool is_lacking(const char *name)
{
    for (unsigned i = 0; i < settings()->lack_count; i++)
        if (!strcmp(name, settings()->lacks[i])) return true;
    return false;
}

void *objc_getClass(const char *name)
{
    pthread_once(&once, start);
    if (is_lacking(name)) return NULL;
    pthread_mutex_lock(&lock);
    class_t *found = classes;
    while (found && (strcmp(found->name, name) != 0 || !found->object.isa)) found = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

void runtime_start(void)
{
    pthread_once(&once, start);
}

uint64_t simMetalSent(const char *selector)
{
    return sel_registerName(selector)->sent;
}

void simMetalWhen(const char *selector, void (*call)(void))
{
    struct selector_t *known = (struct selector_t *)(uintptr_t)sel_registerName(selector);
    atomic_store(&known->when, call);
}

uint64_t simMetalMessages(void)
{
    return messages;
}

unsigned simMetalObjects(const char *class)
{
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    for (class_t *c = classes; c; c = c->next)
        if (!class || !strcmp(class, c->name)) count += c->live;
    pthread_mutex_unlock(&lock);
    return count;
}

void misuse(const void *self, sel_t cmd, const char *format, ...)
{
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    die("-[%s %s]: %s", ((const object_t *)self)->isa->name, sel_getName(cmd), text);
}

void *object_new(class_t *class)
{
    object_t *object = make(class->size);
    object->isa = class;
    object->count = 1;
    object->holds = 1;
    atomic_fetch_add(&class->live, 1);
    return object;
}

void object_hold(void *object)
{
    if (object) atomic_fetch_add(&((object_t *)object)->holds, 1);
}

void object_drop(void *object)
{
    if (object && atomic_fetch_sub(&((object_t *)object)->holds, 1) == 1) free(object);
}

// The hold of the living becomes that of the grave.
static void bury(object_t *object)
{
    pthread_mutex_lock(&lock);
    object_t *oldest = graves[grave_next];
    graves[grave_next] = object;
    grave_next = (grave_next + 1) % GRAVES;
    pthread_mutex_unlock(&lock);
    object_drop(oldest);
}

void *object_retain(void *object)
{
    if (object) atomic_fetch_add(&((object_t *)object)->count, 1);
    return object;
}

void object_release(void *object)
{
    object_t *o = object;
    if (!o || atomic_fetch_sub(&o->count, 1) != 1) return;
    if (o->isa->dealloc) o->isa->dealloc(o);
    atomic_fetch_sub(&o->isa->live, 1);
    bury(o);
}

bool object_is_dead(const void *object)
{
    return ((const object_t *)object)->count == 0;
}

void object_check(const void *self, sel_t cmd, const void *argument, const class_t *class)
{
    const object_t *o = argument;
    if (!o) misuse(self, cmd, "nil where an %s must be", class->name);
    if (o->isa != class) misuse(self, cmd, "an %s where an %s must be", o->isa->name, class->name);
    if (object_is_dead(o)) misuse(self, cmd, "the %s was released", class->name);
}

// The pools of a thread: one stack of objects, and of where each pool begins.
enum { POOLS = 64 };
static PER_THREAD struct {
    object_t **objects;
    size_t count, room;
    uint32_t begins[POOLS]; // there is little room for what each thread has
    size_t pools;
} pool;

void *object_autorelease(void *object)
{
    if (!object) return NULL;
    if (pool.pools == 0)
        die("an %s was autoreleased on a thread without a pool: it would leak",
            ((object_t *)object)->isa->name);
    if (pool.count == pool.room) {
        pool.room = pool.room * 2 + 16;
        pool.objects = realloc(pool.objects, pool.room * sizeof(object_t *));
        if (!pool.objects) die("no memory for an autorelease pool");
    }
    pool.objects[pool.count++] = object;
    return object;
}

void *objc_autoreleasePoolPush(void)
{
    if (pool.pools == POOLS)
        die("%d autorelease pools in one another: is one never popped?", POOLS);
    pool.begins[pool.pools++] = (uint32_t)pool.count;
    return (void *)pool.pools; // its number, from 1
}

void objc_autoreleasePoolPop(void *token)
{
    if ((size_t)token == 0 || (size_t)token != pool.pools)
        die("autorelease pool %zu is popped, but %zu is the innermost of this thread",
            (size_t)token, pool.pools);
    size_t begin = pool.begins[pool.pools - 1];
    while (pool.count > begin) object_release(pool.objects[--pool.count]);
    pool.pools--;
    if (pool.pools) return;
    free(pool.objects);
    pool.objects = NULL;
    pool.room = 0;
}

// What every object answers.
static void *root_retain(void *self, sel_t cmd)
{
    return object_retain(self);
}

static void root_release(void *self, sel_t cmd)
{
    object_release(self);
}

static void *root_autorelease(void *self, sel_t cmd)
{
    return object_autorelease(self);
}

static void *root_init(void *self, sel_t cmd)
{
    return self;
}

static const method_t *find(const class_t *class, sel_t selector);

static bool root_responds(object_t *self, sel_t cmd, sel_t asked)
{
    return find(self->isa, asked) != NULL;
}

static method_t root_methods[] = {METHOD("retain", root_retain),
                                  METHOD("release", root_release),
                                  METHOD("autorelease", root_autorelease),
                                  METHOD("init", root_init),
                                  METHOD("respondsToSelector:", root_responds),
                                  METHODS_END};
class_t NSObject = {.name = "NSObject", .methods = root_methods};

static const method_t *find(const class_t *class, sel_t selector)
{
    if (is_lacking(sel_getName(selector))) return NULL;
    for (const method_t *m = class->methods; m && m->name; m++)
        if (m->selector == selector) return m;
    for (const method_t *m = NSObject.methods; m->name; m++)
        if (m->selector == selector) return m;
    return NULL;
}

bool simMetalUnderstands(const char *class, const char *selector)
{
    runtime_start();
    sel_t asked = sel_registerName(selector);
    const class_t *found = classes;
    while (found && strcmp(found->name, class) != 0) found = found->next;
    if (!found) return false;
    return find(found, asked) || (found->object.isa && find(found->object.isa, asked));
}

static void tally(const method_t *method)
{
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    counters_t *counters = settings()->counters;
    if (!counters) return;
    pthread_mutex_lock(&own);
    __atomic_fetch_add(&counters->sent, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < settings()->tally_room; i++) {
        tally_t *t = &counters->tallies[i];
        if (!t->name[0]) snprintf(t->name, sizeof t->name, "%s", method->name);
        if (strncmp(t->name, method->name, sizeof t->name - 1) != 0) continue;
        t->sent++;
        break;
    }
    pthread_mutex_unlock(&own);
}

static bool strikes(const rule_t *rule, const method_t *method, atomic_uint_fast64_t *count)
{
    if (!rule->number || (rule->selector[0] && strcmp(rule->selector, method->name) != 0))
        return false;
    return rule_means(rule, atomic_fetch_add(count, 1) + 1);
}

static atomic_bool lost;

bool runtime_lost(void)
{
    return atomic_load(&lost);
}

// Whether a rule makes this message answer nil.
static bool fails(const method_t *method)
{
    static atomic_uint_fast64_t lose_count;
    bool hit = false;
    tally(method);
    if (strikes(&settings()->lose, method, &lose_count)) {
        hit = true;
        atomic_store(&lost, true);
    }
    for (unsigned i = 0; i < settings()->fail_count; i++)
        hit |= strikes(&settings()->fail[i], method, &rule_counts[i]);
    if (hit && settings()->counters)
        __atomic_store_n(&settings()->counters->hit, 1, __ATOMIC_RELAXED);
    return hit;
}

// Registers of a message that is sent by the wrong function are one off: where a struct is to go
// stands for the receiver, or the selector does.
static void check_registers(const object_t *self, sel_t selector, bool by_struct)
{
    if (by_struct && self && ((sel_t)(const void *)self)->mark == MARK)
        die("%s: sent by objc_msgSend_stret, but answers no struct of more than 16 bytes",
            sel_getName((sel_t)(const void *)self));
    if (!selector || selector->mark != MARK)
        die("a selector is not from sel_registerName; or a struct of more than 16 bytes is "
            "answered, and objc_msgSend_stret must be used here");
}

imp_t runtime_find(object_t *self, sel_t selector, bool by_struct)
{
    runtime_start();
    atomic_fetch_add_explicit(&messages, 1, memory_order_relaxed);
    check_registers(self, selector, by_struct);
    struct selector_t *known = (struct selector_t *)(uintptr_t)selector;
    atomic_fetch_add_explicit(&known->sent, 1, memory_order_relaxed);
    void (*when)(void) = atomic_load(&known->when) ? atomic_exchange(&known->when, NULL) : NULL;
    if (when) when();
    if (!self && by_struct) die("-[nil %s]: its struct has no value", sel_getName(selector));
    if (!self) return send_nil;
    bool is_class = self->count == 0 && self->holds == 0;
    if (self->count == 0 && !is_class)
        die("-[%s %s]: the object was released", self->isa->name, sel_getName(selector));
    const method_t *method = find(self->isa, selector);
    if (!method) die("-[%s %s]: unrecognized selector", self->isa->name, sel_getName(selector));
    if (method->flags & METHOD_NIL && fails(method)) return send_nil;
    return method->imp;
}
