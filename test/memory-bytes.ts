import { collectGarbage } from './collect-garbage.js'

/** Bytes of the heap and of buffers that are in use after a full collection. */
export function memoryBytes(): number {
  for (let time = 0; time < 4; time += 1) collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
