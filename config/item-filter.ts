import type { Parsed } from './setting.js'

/**
 * Which transactions and data items are meant, as operators of this network write it in JSON:
 *
 *     {"always": true}  {"never": true}  {"isNestedBundle": true}
 *     {"tags": [{"name": "App", "value": "x"}, {"name": "Type", "valueStartsWith": "a/"}, {"name": "Any"}]}
 *     {"attributes": {"owner_address": "..."}}
 *     {"hashPartition": {"partitionCount": 4, "partitionKey": "id", "targetPartitions": [0, 1]}}
 *     {"and": [...]}  {"or": [...]}  {"not": {...}}
 */
export type ItemFilter =
  | { readonly kind: 'always' }
  | { readonly kind: 'never' }
  /** Has a parent. */
  | { readonly kind: 'nested' }
  /** All of them must be there. */
  | { readonly kind: 'tags'; readonly tags: readonly TagWish[] }
  /** All of them must be equal. */
  | { readonly kind: 'attributes'; readonly attributes: readonly AttributeWish[] }
  | {
      readonly kind: 'partition'
      readonly count: number
      readonly field: AttributeName
      readonly targets: readonly number[]
    }
  | { readonly kind: 'and' | 'or'; readonly filters: readonly ItemFilter[] }
  | { readonly kind: 'not'; readonly filter: ItemFilter }

export interface TagWish {
  readonly name: string
  readonly value?: string
  readonly startsWith?: string
}

export interface AttributeWish {
  readonly name: AttributeName
  readonly value: string | number
}

/** Fields that filters may ask for. Bytes are base64url, amounts decimal texts, sizes and types numbers. */
export const attributeNames = [
  ...([
    'id',
    'owner',
    'owner_address',
    'target',
    'anchor',
    'last_tx',
    'signature',
    'signature_type',
  ] as const),
  ...(['format', 'quantity', 'reward', 'data_root', 'data_size', 'parent_id', 'root_tx_id'] as const),
  'content_type',
] as const
export type AttributeName = (typeof attributeNames)[number]

const depthMax = 20
const listMax = 1000

type Json = Readonly<Record<string, unknown>>
type Read = (value: unknown, depth: number) => Parsed<ItemFilter>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const readers: Readonly<Record<string, Read>> = {
  always: constant('always'),
  never: constant('never'),
  isNestedBundle: constant('nested'),
  tags: readTags,
  attributes: readAttributes,
  hashPartition: readPartition,
  and: (value, depth) => readList('and', value, depth),
  or: (value, depth) => readList('or', value, depth),
  not(value, depth) {
    const inner = readFilter(value, depth + 1)
    return 'wrong' in inner ? inner : { value: { kind: 'not', filter: inner.value } }
  },
}

/** Reads a filter out of JSON text; what is wrong with it names the part that is. */
export function readItemFilter(text: string): Parsed<ItemFilter> {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    return { wrong: `is not JSON: ${(error as Error).message}` }
  }
  return readFilter(json, 0)
}

function readFilter(json: unknown, depth: number): Parsed<ItemFilter> {
  if (depth > depthMax) return { wrong: `has filters inside filters more than ${depthMax} deep` }
  if (!isObject(json)) return { wrong: `has ${show(json)} where a filter must be` }
  const [name, ...more] = Object.keys(json)
  if (name === undefined || more.length > 0) {
    return { wrong: `has a filter of ${more.length === 0 ? 'no' : 'several'} kinds: ${show(json)}` }
  }
  const read = Object.hasOwn(readers, name) ? readers[name] : undefined
  if (read === undefined)
    return { wrong: `has the unknown filter "${name}"; known are ${Object.keys(readers).join(', ')}` }
  return read(json[name], depth)
}

function constant(kind: 'always' | 'never' | 'nested'): Read {
  return (value) =>
    value === true ? { value: { kind } } : { wrong: `has ${show(value)} where true must be` }
}

function readList(kind: 'and' | 'or', value: unknown, depth: number): Parsed<ItemFilter> {
  if (!isList(value)) return { wrong: `has ${show(value)} where "${kind}" needs a list` }
  const filters: ItemFilter[] = []
  for (const one of value) {
    const read = readFilter(one, depth + 1)
    if ('wrong' in read) return read
    filters.push(read.value)
  }
  return { value: { kind, filters } }
}

function readTags(value: unknown): Parsed<ItemFilter> {
  if (!isList(value)) return { wrong: `has ${show(value)} where "tags" needs a list` }
  const tags: TagWish[] = []
  for (const tag of value) {
    if (!isObject(tag) || typeof tag.name !== 'string')
      return { wrong: `has a tag without name: ${show(tag)}` }
    const { name, value: whole, valueStartsWith: start, ...more } = tag
    const texts = [whole, start].every((one) => one === undefined || typeof one === 'string')
    if (!texts || (whole !== undefined && start !== undefined) || Object.keys(more).length > 0) {
      return {
        wrong: `has a tag with other fields than name and one of value, valueStartsWith: ${show(tag)}`,
      }
    }
    tags.push({
      name,
      ...(typeof whole === 'string' ? { value: whole } : {}),
      ...(typeof start === 'string' ? { startsWith: start } : {}),
    })
  }
  return { value: { kind: 'tags', tags } }
}

function attributeName(name: unknown): AttributeName | undefined {
  return attributeNames.find((one) => one === name)
}

function readAttributes(value: unknown): Parsed<ItemFilter> {
  if (!isObject(value) || Object.keys(value).length === 0) {
    return { wrong: `has ${show(value)} where "attributes" needs an object` }
  }
  const attributes: AttributeWish[] = []
  for (const [key, wish] of Object.entries(value)) {
    const name = attributeName(key)
    if (name === undefined) return { wrong: `has the unknown attribute "${key}"` }
    if (typeof wish !== 'string' && typeof wish !== 'number') {
      return { wrong: `has ${show(wish)} as attribute "${key}": a text or a number must be there` }
    }
    attributes.push({ name, value: wish })
  }
  return { value: { kind: 'attributes', attributes } }
}

function readPartition(value: unknown): Parsed<ItemFilter> {
  if (!isObject(value)) return { wrong: `has ${show(value)} where "hashPartition" needs an object` }
  const { partitionCount: count, partitionKey, targetPartitions: targets, ...more } = value
  const field = attributeName(partitionKey)
  if (field === undefined) return { wrong: `has the unknown partitionKey ${show(partitionKey)}` }
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 1) {
    return { wrong: `has the partitionCount ${show(count)}: a whole number from 1 on must be there` }
  }
  const inside = (one: unknown): one is number =>
    Number.isSafeInteger(one) && Number(one) >= 0 && Number(one) < count
  if (!isList(targets) || !targets.every(inside)) {
    return { wrong: `has targetPartitions that are no list of whole numbers below ${count}` }
  }
  if (Object.keys(more).length > 0)
    return { wrong: `has unknown fields in hashPartition: ${Object.keys(more)}` }
  return { value: { kind: 'partition', count, field, targets } }
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0 && value.length <= listMax
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}
