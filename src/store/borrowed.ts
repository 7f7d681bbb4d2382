import type { Cell } from '../actor/shared.js'
import type { Residence } from './residence.js'

/** Memory with a payload in it, for a server that sends from it by itself. */
export interface Borrowed {
  /** One for each file, to know it again. */
  readonly owner: object
  /** All of the file. */
  readonly memory: Uint8Array
  /** Which of it is believed to be in memory. */
  readonly here: Residence
  /** The file by a number that is the same on all threads, from 1 on. Absent: there is none. */
  readonly key?: number
  /** Where in the memory the payload begins. */
  readonly offset: number
  /** The payload is this one while the memory is there and these numbers have these values. */
  readonly conditions: readonly (readonly [cell: Cell, value: number])[]
  /** The bit that says that the payload was requested. Absent: whoever serves it says so by and by. */
  readonly requested?: Cell & { readonly bit: number }
  /** Calls `act` before the memory goes. */
  onGone(act: () => void): void
  /** The memory stays until the function is called that this gives. To be called in `act`, too. */
  hold(): () => void
}
