import { skipBlanks } from './blank.js'

/**
 * Structured fields (RFC 9651) as far as message signatures need them: dictionaries of items and inner lists, with
 * parameters. Bare items are strings, integers, booleans, byte sequences and tokens; decimals, dates and display strings
 * are taken as malformed.
 */
export type BareItem = string | number | boolean | Uint8Array | Token

/** A token, distinguishable from a string. */
export interface Token {
  readonly token: string
}

export type Parameters = ReadonlyMap<string, BareItem>

export interface Item {
  readonly value: BareItem
  readonly parameters: Parameters
}

export interface InnerList {
  readonly items: readonly Item[]
  readonly parameters: Parameters
}

export type Dictionary = ReadonlyMap<string, Item | InnerList>

const key = /[a-z*][a-z0-9_.*-]*/y
const integer = /-?\d{1,15}/y
const token = /[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*/y
const string = /"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"/y
const binary = /:([A-Za-z0-9+/]*={0,2}):/y
const boolean = /\?([01])/y

/** Reads one field value from left to right. A method that gives undefined has found it malformed. */
class Reader {
  at = 0

  constructor(readonly text: string) {}

  /** Matches `pattern` here and steps over it. */
  match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found === null) return undefined
    this.at = pattern.lastIndex
    return found
  }

  /** Steps over `char` if it stands here. */
  take(char: string): boolean {
    if (this.text[this.at] !== char) return false
    this.at++
    return true
  }

  skipSpaces(): void {
    while (this.text[this.at] === ' ') this.at++
  }

  bareItem(): BareItem | undefined {
    const text = this.match(string)?.[1]
    if (text !== undefined) return text.replace(/\\(.)/g, '$1')
    const bytes = this.match(binary)?.[1]
    if (bytes !== undefined) return Buffer.from(bytes, 'base64')
    const flag = this.match(boolean)?.[1]
    if (flag !== undefined) return flag === '1'
    const word = this.match(token)?.[0]
    if (word !== undefined) return { token: word }
    const digits = this.match(integer)?.[0]
    return digits === undefined || this.text[this.at] === '.' ? undefined : Number(digits)
  }

  parameters(): Map<string, BareItem> | undefined {
    const parameters = new Map<string, BareItem>()
    while (this.take(';')) {
      this.skipSpaces()
      const name = this.match(key)?.[0]
      if (name === undefined) return undefined
      const value = this.take('=') ? this.bareItem() : true
      if (value === undefined) return undefined
      // A repeated name replaces the earlier one and moves to the end.
      parameters.delete(name)
      parameters.set(name, value)
    }
    return parameters
  }

  item(): Item | undefined {
    const value = this.bareItem()
    const parameters = value === undefined ? undefined : this.parameters()
    return value === undefined || parameters === undefined ? undefined : { value, parameters }
  }

  innerList(): InnerList | undefined {
    const items: Item[] = []
    for (;;) {
      this.skipSpaces()
      if (this.take(')')) break
      const item = this.item()
      if (item === undefined || !' )'.includes(this.text[this.at] ?? '!')) return undefined
      items.push(item)
    }
    const parameters = this.parameters()
    return parameters === undefined ? undefined : { items, parameters }
  }

  member(): Item | InnerList | undefined {
    if (!this.take('=')) {
      const parameters = this.parameters()
      return parameters === undefined ? undefined : { value: true, parameters }
    }
    return this.take('(') ? this.innerList() : this.item()
  }
}

/** Reads a dictionary field (several lines joined with a comma), or undefined where it is malformed. */
export function parseDictionary(field: string): Dictionary | undefined {
  const reader = new Reader(field)
  const members = new Map<string, Item | InnerList>()
  reader.skipSpaces()
  while (reader.at < field.length) {
    const name = reader.match(key)?.[0]
    const member = name === undefined ? undefined : reader.member()
    if (name === undefined || member === undefined) return undefined
    members.delete(name)
    members.set(name, member)
    reader.at = skipBlanks(field, reader.at)
    if (reader.at === field.length) break
    if (!reader.take(',')) return undefined
    reader.at = skipBlanks(field, reader.at)
    if (reader.at === field.length) return undefined
  }
  return members
}

/** Writes a bare item. Throws a RangeError for what the grammar cannot say: a bug of the caller. */
export function serializeBareItem(value: BareItem): string {
  if (typeof value === 'boolean') return value ? '?1' : '?0'
  if (value instanceof Uint8Array) return `:${Buffer.from(value).toString('base64')}:`
  if (typeof value === 'number') {
    if (!Number.isInteger(value) || Math.abs(value) > 999_999_999_999_999) {
      throw new RangeError(`${value} is no integer of at most 15 digits`)
    }
    return value.toString()
  }
  if (typeof value === 'string') {
    if (!/^[\x20-\x7e]*$/.test(value)) throw new RangeError('a string holds printable ASCII only')
    return `"${value.replace(/["\\]/g, '\\$&')}"`
  }
  token.lastIndex = 0
  if (token.exec(value.token)?.[0] !== value.token) throw new RangeError(`${value.token} is no token`)
  return value.token
}

function serializeParameters(parameters: Parameters): string {
  let text = ''
  for (const [name, value] of parameters) {
    checkKey(name)
    text += value === true ? `;${name}` : `;${name}=${serializeBareItem(value)}`
  }
  return text
}

function checkKey(name: string): void {
  key.lastIndex = 0
  if (key.exec(name)?.[0] !== name) throw new RangeError(`${name} is no key`)
}

/** Writes an item with its parameters. */
export function serializeItem(item: Item): string {
  return serializeBareItem(item.value) + serializeParameters(item.parameters)
}

/** Writes an inner list with its parameters: the value of `@signature-params`. */
export function serializeInnerList(list: InnerList): string {
  return `(${list.items.map(serializeItem).join(' ')})${serializeParameters(list.parameters)}`
}

/** Writes a dictionary: the value of Signature-Input, Signature and the digest fields. */
export function serializeDictionary(dictionary: Dictionary): string {
  const members: string[] = []
  for (const [name, member] of dictionary) {
    checkKey(name)
    if ('items' in member) members.push(`${name}=${serializeInnerList(member)}`)
    else if (member.value === true) members.push(name + serializeParameters(member.parameters))
    else members.push(`${name}=${serializeItem(member)}`)
  }
  return members.join(', ')
}
