import { VarReader, VarWriter } from '../format/varbytes.js'
import { shapeMax, type ValueShape } from './shapes.js'
import { Top } from './top.js'

/** Name and shape of values that stand in rows. */
export interface Form {
  readonly name: Buffer
  readonly shape: ValueShape
  /** Values of it that are in rows. */
  readonly count: number
}

/** So many of a segment have a number of their own. */
export const formsMax = 60

/** Counts how often values of a name and shape stand in rows, of at most so many names. */
const countedMax = 4096

/** Counts values by their name and shape. Beyond `countedMax` of these, new ones are not counted. */
export class FormCounter {
  readonly #counts = new Map<string, { name: Buffer; shape: ValueShape; count: number }>()

  add(name: Uint8Array, shape: ValueShape, count: number): void {
    const key = shape + Buffer.from(name.buffer, name.byteOffset, name.byteLength).toString('latin1')
    const known = this.#counts.get(key)
    if (known !== undefined) known.count += count
    else if (this.#counts.size < countedMax) this.#counts.set(key, { name: Buffer.from(name), shape, count })
  }

  /** The most frequent ones. */
  forms(): Form[] {
    const all = [...this.#counts.values()]
    const top = new Top(formsMax)
    for (const [at, { count }] of all.entries()) top.add(at, count)
    return top.sorted().map((at) => all[at] as Form)
  }
}

/** Forms as a section: shape u8, count, name behind its length. */
export function encodeForms(forms: readonly Form[]): Buffer {
  const out = new VarWriter()
  for (const { name, shape, count } of forms) {
    out.u8(shape)
    out.uint(count)
    out.block(name)
  }
  return out.written
}

/** What `encodeForms` made. Throws a RangeError on other bytes. */
export function decodeForms(bytes: Uint8Array, count: number): Form[] {
  const read = new VarReader(bytes)
  return Array.from({ length: count }, () => {
    const shape = read.u8()
    if (shape > shapeMax) throw new RangeError(`no shape of a value has the number ${shape}`)
    return { shape: shape as ValueShape, count: read.uint(), name: Buffer.from(read.block()) }
  })
}

/** Finds forms by name and shape. */
export class FormNumbers {
  readonly count: number
  readonly #numbers: Map<string, number>[] = []

  constructor(forms: readonly Form[]) {
    this.count = forms.length
    for (const [at, { name, shape }] of forms.entries()) {
      const numbers = this.#numbers[shape] ?? new Map<string, number>()
      this.#numbers[shape] = numbers
      numbers.set(name.toString('latin1'), at + 1)
    }
  }

  /** From 1 on; 0 where there is none. */
  of(name: Uint8Array, shape: ValueShape): number {
    const text = Buffer.from(name.buffer, name.byteOffset, name.byteLength).toString('latin1')
    return this.#numbers[shape]?.get(text) ?? 0
  }
}
