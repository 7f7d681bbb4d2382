import { join, resolve } from 'node:path'
import { readConfig } from '../../config/read.js'
import { checkWhileIdle } from '../main/data-folder.js'
import { LocalRegistry } from '../names/local-registry.js'
import { parseName } from '../names/name.js'
import { readRecord } from '../names/record.js'
import { WrongWords } from './wallet.js'

/** Sets a name in the registry of this machine's gateway. It may be remembered for so many seconds. */
export async function setOwnName(text: string, id: string, ttlSeconds: number): Promise<void> {
  const config = readConfig()
  if (Array.isArray(config)) throw new WrongWords(config.join('; '))
  const name = parseName(text)
  const record = readRecord({ id, ttlSeconds })
  if (name === undefined || record === undefined) throw new WrongWords(`${text} is no name`)
  const root = resolve(config.server.dataPath)
  await checkWhileIdle(root)
  const registry = new LocalRegistry(join(root, 'names'))
  try {
    registry.set([[name, record]])
  } finally {
    await registry.close()
  }
}
