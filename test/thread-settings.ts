import { type Config, readConfig } from '../config/read.js'
import { sharedMemory } from '../src/main/allocate-memory.js'
import type { SharedMemory } from '../src/threads/shared-memory.js'

/** Settings and shared memory as the program makes them, for threads that a test starts itself; data lies below `path`. */
export function threadSettings(
  path: string,
  environment: Readonly<Record<string, string>> = {},
): { readonly config: Config; readonly memory: SharedMemory } {
  const given = { NETWORK: 'devnet', EDGE_THREADS: '1', LOG_LEVEL: 'silent', DATA_PATH: path, ...environment }
  const config = readConfig(given, {})
  if (Array.isArray(config)) throw new Error(config.join('\n'))
  return { config, memory: sharedMemory(config) }
}
