import { type Id, parseId } from '../format/id.js'

/** A path manifest (`arweave/paths` 0.1.0 and 0.2.0): which content stands at which path. */
export interface PathManifest {
  readonly paths: ReadonlyMap<string, Id>
  /** Content of the empty path. */
  readonly index: Id | undefined
  /** Content of every path that is not listed. */
  readonly fallback: Id | undefined
}

/** Reads a manifest. Entries without a valid id are left out; undefined where the bytes are no manifest at all. */
export function readPathManifest(bytes: Uint8Array): PathManifest | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'))
  } catch {
    return undefined
  }
  if (!isRecord(parsed)) return undefined
  const paths = new Map<string, Id>()
  for (const [path, target] of Object.entries(isRecord(parsed.paths) ? parsed.paths : {})) {
    const id = idIn(target)
    const key = trimSlashes(path)
    if (id !== undefined && !paths.has(key)) paths.set(key, id)
  }
  const { index } = parsed
  const named =
    isRecord(index) && typeof index.path === 'string' ? paths.get(trimSlashes(index.path)) : undefined
  return { paths, index: named ?? idIn(index), fallback: idIn(parsed.fallback) }
}

/** The content at `path` (decoded, without the leading slash); trailing slashes do not matter. */
export function resolvePath(
  manifest: PathManifest,
  path: string,
): { readonly id: Id; readonly fallback: boolean } | undefined {
  const key = trimSlashes(path)
  const found = key === '' ? manifest.index : manifest.paths.get(key)
  if (found !== undefined) return { id: found, fallback: false }
  return manifest.fallback === undefined ? undefined : { id: manifest.fallback, fallback: true }
}

function trimSlashes(path: string): string {
  let end = path.length
  while (end > 0 && path.charCodeAt(end - 1) === 47) end -= 1
  return path.slice(0, end)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function idIn(value: unknown): Id | undefined {
  return isRecord(value) && typeof value.id === 'string' ? parseId(value.id) : undefined
}
