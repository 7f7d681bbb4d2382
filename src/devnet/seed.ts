import type { Log } from '../actor/log.js'

/** Name to id. */
export type Examples = Readonly<Record<string, string>>

export async function plant(_: {
  gateway: string
  node: string
  folder: string
  log: Log
}): Promise<Examples> {
  return {}
}
