import type { FileHandle } from 'node:fs/promises'
import type { Attributes } from '../../catalog/attributes.js'
import type { OpenBlob } from '../../store/blobs.js'
import type { TransferParts } from './transfer-parts.js'

/** A blob that is on disk, open for reading. */
export interface LocalBlob {
  readonly known: Attributes
  readonly handle: FileHandle
  /** Where it begins in the file. */
  readonly offset: number
}

/**
 * Opens the blob of what is known, where the catalog says that there is one. Undefined: there is none, or it cannot be opened
 * now. Only one that is missing or has another size loses its record. One that cannot be opened (no descriptor is left, the disk
 * fails) stays where it is: the content is fetched anew, and takes its place if that can be kept.
 */
export async function openLocal(
  known: Attributes | undefined,
  {
    catalog,
    store,
    small,
    keeper,
    log,
  }: Pick<TransferParts, 'catalog' | 'store' | 'small' | 'keeper' | 'log'>,
): Promise<LocalBlob | undefined> {
  if (known?.digest === undefined || catalog.blobSize(known.digest) === undefined) return undefined
  const { id } = known
  let blob: OpenBlob | undefined
  try {
    blob = await store.open(known.digest)
    if (blob?.sizeBytes === known.size) {
      return { known, handle: blob.handle, offset: blob.offset }
    }
  } catch (error) {
    await blob?.handle.close()
    log.error({ err: error, id }, 'a file of the cache cannot be opened: the content is fetched again')
    return undefined
  }
  await blob?.handle.close()
  small?.remove(known.digest)
  log.warn({ id }, 'a file of the cache is missing: the content is fetched again')
  await keeper.ask({ kind: 'dropped', digest: known.digest })
  return undefined
}
