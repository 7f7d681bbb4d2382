import type { Source } from '../source.js'
import { inOrder } from './in-order.js'

/** The sources of `order` that are built, tried one after the other. Names that nobody built are skipped. */
export function assemble(name: string, order: readonly string[], built: readonly Source[]): Source {
  const chosen = order.flatMap((one) => built.filter((source) => source.name === one))
  return inOrder(name, chosen)
}
