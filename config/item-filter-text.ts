import type { ItemFilter } from './item-filter.js'

/** A filter as operators write it: what `readItemFilter` reads (item-filter.ts). */
export function itemFilterJson(filter: ItemFilter): Readonly<Record<string, unknown>> {
  switch (filter.kind) {
    case 'always':
    case 'never':
      return { [filter.kind]: true }
    case 'nested':
      return { isNestedBundle: true }
    case 'tags':
      return {
        tags: filter.tags.map(({ name, value, startsWith }) => ({
          name,
          ...(value === undefined ? {} : { value }),
          ...(startsWith === undefined ? {} : { valueStartsWith: startsWith }),
        })),
      }
    case 'attributes':
      return { attributes: Object.fromEntries(filter.attributes.map(({ name, value }) => [name, value])) }
    case 'partition': {
      const { count, field, targets } = filter
      return { hashPartition: { partitionCount: count, partitionKey: field, targetPartitions: targets } }
    }
    case 'not':
      return { not: itemFilterJson(filter.filter) }
    default:
      return { [filter.kind]: filter.filters.map(itemFilterJson) }
  }
}
