// SPDX-License-Identifier: Apache-2.0
#include "tracer/map.h"

#include "base/memory.h"
#include "base/status.h"

static uint32_t place_find(const map_t *map, uint64_t key)
{
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (map->size - 1);
    while (map->keys[at] && map->keys[at] != key) at = (at + 1) & (map->size - 1);
    return at;
}

static keel_status_t map_grow(map_t *map)
{
    map_t grown = {.count = map->count, .size = map->size ? map->size * 2 : 1024};
    grown.keys = mem_zalloc(grown.size * sizeof *grown.keys);
    grown.values = mem_zalloc(grown.size * sizeof *grown.values);
    if (!grown.keys || !grown.values) {
        map_finish(&grown);
        return status_no_memory();
    }
    for (uint32_t i = 0; i < map->size; i++) {
        if (!map->keys[i]) continue;
        uint32_t at = place_find(&grown, map->keys[i]);
        grown.keys[at] = map->keys[i];
        grown.values[at] = map->values[i];
    }
    map_finish(map);
    *map = grown;
    return NULL;
}

keel_status_t map_put(map_t *map, uint64_t key, uint32_t value)
{
    if (map->count >= map->size / 2) KEEL_TRY(map_grow(map));
    uint32_t at = place_find(map, key);
    if (map->keys[at]) return NULL;
    map->keys[at] = key;
    map->values[at] = value;
    map->count++;
    return NULL;
}

keel_status_t map_replace(map_t *map, uint64_t key, uint32_t value)
{
    KEEL_TRY(map_put(map, key, value));
    map->values[place_find(map, key)] = value;
    return NULL;
}

bool map_get(const map_t *map, uint64_t key, uint32_t *value)
{
    if (!map->size) return false;
    uint32_t at = place_find(map, key);
    *value = map->values[at];
    return map->keys[at] != 0;
}

void map_finish(map_t *map)
{
    mem_free(map->keys);
    mem_free(map->values);
    *map = (map_t){0};
}
