import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock } from '../src/actor/clock.js'
import { Generations } from '../src/catalog/generations.js'
import { CatalogKeeper } from '../src/catalog/keeper.js'
import { LocalRegistry } from '../src/names/local-registry.js'
import { blobPath } from '../src/store/blobs.js'
import type { BenchObject } from './objects.js'

/**
 * Puts objects into a gateway's data folder as if they had been fetched, proven and kept; each has its size as its name. The
 * gateway must not run.
 */
export async function seed(dataPath: string, objects: readonly BenchObject[]): Promise<void> {
  const catalogPath = join(dataPath, 'catalog')
  mkdirSync(catalogPath, { recursive: true })
  const keeper = new CatalogKeeper(
    { path: catalogPath, touchEveryMs: 60_000 },
    new Generations(),
    systemClock,
  )
  for (const { id, path, digest, sizeBytes } of objects) {
    const blob = blobPath(join(dataPath, 'blobs'), digest)
    mkdirSync(dirname(blob), { recursive: true, mode: 0o700 })
    copyFileSync(path, blob)
    const known = { id, size: sizeBytes, contentType: 'application/octet-stream', digest }
    await keeper.handle({ kind: 'learn', attributes: [{ ...known, verified: true, trusted: true }] })
    await keeper.handle({ kind: 'kept', digest, sizeBytes })
  }
  await keeper.close()
  const names = new LocalRegistry(join(dataPath, 'names'))
  names.set(
    objects.map(({ name, id }) => [
      { full: name, basename: name, record: '@' },
      { id, ttlSeconds: 3600 },
    ]),
  )
  await names.close()
}
