import { bundleTags, packedSizeOf } from './bundle-layout.js'
import { utf8 } from './bytes.js'
import { type ManifestChoice, manifestOf } from './path-manifest.js'
import { type DataItemOptions, itemSizeOf } from './prepare.js'
import type { ClientSigner } from './signer.js'
import type { TextTag } from './tags.js'

/** What an upload of a folder is about to send. */
export interface FolderPlan {
  /** In those that are bundles, together. */
  readonly itemsInside: number
  /** Bytes of each item with its header, bundles as they are, the manifest last. Each is charged for by itself. */
  readonly itemBytes: readonly number[]
  /** Files that are uploaded, and those that are there already. */
  readonly files: number
  readonly reusedFiles: number
}

/** A file as far as the size of its item depends on it. */
interface PlannedFile {
  readonly bytes: number
  readonly tags: readonly TextTag[]
}

/** Bytes of the item that a bundle of these files will be. */
export function bundleBytesOf(
  files: readonly PlannedFile[],
  itemSigner: ClientSigner,
  signer: ClientSigner,
): number {
  const inner = files.map(({ bytes, tags }) => itemSizeOf(bytes, { tags }, itemSigner))
  return itemSizeOf(packedSizeOf(inner), { tags: bundleTags }, signer)
}

/** An id is as long as any other, so the manifest has its size before the files have their ids. */
const someId = 'A'.repeat(43)

/** Bytes of the item that the manifest of these paths will be. */
export function manifestBytesOf(
  paths: readonly string[],
  choice: ManifestChoice,
  options: DataItemOptions,
  signer: ClientSigner,
): number {
  const manifest = manifestOf(new Map(paths.map((path) => [path, someId])), choice)
  return itemSizeOf(utf8(JSON.stringify(manifest)).length, options, signer)
}
