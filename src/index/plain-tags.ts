import { type Form, FormCounter, type FormNumbers } from './forms.js'
import { shapeMax, shapeOf, type ValueShape } from './shapes.js'
import { compareBytes, nameStart, valueStart } from './word-key.js'

const shapes = shapeMax + 1

/** Marks a tag without a number: bits 8 to 15 are the shape of its value, those below the number of its form. */
export const plainTag = 2 ** 31

/** Tags without a number, in the order of their keys: those of a name stand beside each other. */
export class PlainTags {
  #count = 0
  #names = 0
  readonly #words: Uint32Array
  /** Shapes of their values. */
  readonly #shapes: Uint8Array
  /** Indexed by name: where it lies in the keys, how many words come before it, and how many values have each shape. */
  #from: Uint32Array = new Uint32Array(64)
  #to: Uint32Array = new Uint32Array(64)
  #before: Uint32Array = new Uint32Array(64)
  #counts: Uint32Array = new Uint32Array(64 * shapes)

  constructor(words: number) {
    this.#words = new Uint32Array(words)
    this.#shapes = new Uint8Array(words)
  }

  /** The key lies from `start` to `end`. */
  add(word: number, keys: Uint8Array, start: number, end: number): void {
    const [from, to] = [nameStart(keys, start), valueStart(keys, start, end)]
    const last = this.#names - 1
    const isNew =
      last < 0 ||
      compareBytes(keys, this.#from[last] as number, this.#to[last] as number, keys, from, to) !== 0
    if (isNew) this.#begin()
    const name = this.#names - 1
    // The one that was looked at last is at hand.
    this.#from[name] = from
    this.#to[name] = to
    const shape = shapeOf(keys, to, end)
    const at = name * shapes + shape
    this.#counts[at] = (this.#counts[at] as number) + 1
    this.#words[this.#count] = word
    this.#shapes[this.#count] = shape
    this.#count += 1
  }

  #begin(): void {
    if (this.#names === this.#from.length) {
      this.#from = twice(this.#from)
      this.#to = twice(this.#to)
      this.#before = twice(this.#before)
      this.#counts = twice(this.#counts)
    }
    this.#before[this.#names] = this.#count
    this.#names += 1
  }

  /** The names and shapes that are worth a number. */
  forms(keys: Buffer): Form[] {
    const counter = new FormCounter()
    for (let name = 0; name < this.#names; name += 1) {
      for (let shape = 0; shape < shapes; shape += 1) {
        const count = this.#counts[name * shapes + shape] as number
        if (count > 0)
          counter.add(keys.subarray(this.#from[name], this.#to[name]), shape as ValueShape, count)
      }
    }
    return counter.forms()
  }

  /** Gives each word the number of its form: see `plainTag`. */
  number(keys: Buffer, to: Uint32Array, numbers: FormNumbers): void {
    const of = new Uint8Array(shapes)
    for (let name = 0; name < this.#names; name += 1) {
      const text = keys.subarray(this.#from[name], this.#to[name])
      for (let shape = 0; shape < shapes; shape += 1) of[shape] = numbers.of(text, shape as ValueShape)
      const end = name + 1 < this.#names ? (this.#before[name + 1] as number) : this.#count
      for (let at = this.#before[name] as number; at < end; at += 1) {
        const shape = this.#shapes[at] as number
        to[this.#words[at] as number] = plainTag + (shape << 8) + (of[shape] as number)
      }
    }
  }
}

function twice(array: Uint32Array): Uint32Array {
  const larger = new Uint32Array(2 * array.length)
  larger.set(array)
  return larger
}
