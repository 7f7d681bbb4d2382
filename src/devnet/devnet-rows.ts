import type { Table } from '../store/lmdb.js'

/** How keys and values of one table are encoded. The order of encoded keys as bytes is the order of iteration. */
export interface Writing<Key, Value> {
  key(key: Key): Uint8Array
  keyOf(bytes: Uint8Array): Key
  value(value: Value): Uint8Array
  valueOf(bytes: Uint8Array): Value
}

/** A table whose keys and values have types. */
export class Rows<Key, Value> {
  readonly #table: Table
  readonly #writing: Writing<Key, Value>

  constructor(table: Table, writing: Writing<Key, Value>) {
    this.#table = table
    this.#writing = writing
  }

  get(key: Key): Value | undefined {
    const bytes = this.#table.get(this.#writing.key(key))
    return bytes === undefined ? undefined : this.#writing.valueOf(bytes)
  }

  /** At most `limit` rows in the order of keys, from `start` on (from the first without). */
  from(start: Key | undefined, limit: number): { readonly key: Key; readonly value: Value }[] {
    const found = this.#table.from(start === undefined ? undefined : this.#writing.key(start), limit)
    return found.map(({ key, value }) => ({
      key: this.#writing.keyOf(key),
      value: this.#writing.valueOf(value),
    }))
  }

  put(key: Key, value: Value): void {
    this.#table.put(this.#writing.key(key), this.#writing.value(value))
  }

  remove(key: Key): void {
    this.#table.remove(this.#writing.key(key))
  }
}

type KeyWriting<Key> = Pick<Writing<Key, unknown>, 'key' | 'keyOf'>
type ValueWriting<Value> = Pick<Writing<unknown, Value>, 'value' | 'valueOf'>

export const textKey: KeyWriting<string> = {
  key: (text) => Buffer.from(text, 'utf8'),
  keyOf: (bytes) => Buffer.from(bytes).toString('utf8'),
}

/** Whole numbers below 2^53, 8 bytes big-endian: they sort as numbers. */
export const wholeKey: KeyWriting<number> = {
  key: (number) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64BE(BigInt(number))
    return bytes
  },
  keyOf: (bytes) => Number(Buffer.from(bytes).readBigUInt64BE()),
}

/** Values of a type that JSON carries whole. */
export function jsonValue<Value>(): ValueWriting<Value> {
  return {
    value: (value) => Buffer.from(JSON.stringify(value), 'utf8'),
    valueOf: (bytes) => JSON.parse(Buffer.from(bytes).toString('utf8')) as Value,
  }
}
