import type { RowBatch } from '../index/row-batch.js'
import { type Field, wordField } from '../index/word-key.js'
import { type MessageRows, wordNumbers } from './message-rows.js'
import { type WordRole, wordRole } from './pack.js'

const fields: Readonly<Record<WordRole, Field>> = {
  [wordRole.tag]: wordField.tag,
  [wordRole.owner]: wordField.owner,
  [wordRole.recipient]: wordField.recipient,
  [wordRole.bundle]: wordField.parent,
}

/** The words of a message in a batch: looked up all at once when the first row of the message is taken, and not before. */
export class BulkWords {
  #numbers: Uint32Array | undefined

  constructor(
    private readonly batch: RowBatch,
    private readonly rows: MessageRows,
  ) {}

  /** The number in the batch of each word of the message, from 0 on. */
  get numbers(): Uint32Array {
    this.#numbers ??= this.#lookUp()
    return this.#numbers
  }

  #lookUp(): Uint32Array {
    const { batch, rows } = this
    const words = rows.words.slice()
    for (let at = 0; at < words.length; at += wordNumbers) words[at] = fields[words[at] as WordRole]
    const numbers = batch.words.internAll(rows.bytes, words)
    for (const { word, key } of rows.keys) batch.addKeyOf(numbers[word - 1] as number, key)
    return numbers
  }
}
