import { type Id, parseId } from './id.js'
import { type Refusal, refuse } from './refusal.js'

/**
 * A path manifest (`arweave/paths`, versions 0.1.0 and 0.2.0): a JSON object that names an item for each path.
 *
 *     { "manifest": "arweave/paths", "version": "0.2.0",
 *       "index": { "path": "index.html" } or { "id": "..." }, "fallback": { "id": "..." },
 *       "paths": { "index.html": { "id": "..." } } }
 *
 * Read as tolerantly as gateways in use do: the type word is not enforced, any version but 0.2.0 is read as 0.1.0
 * (no `index.id`, no `fallback`), and an id is only looked at when it is asked for.
 */
export interface Manifest {
  /** Paths without slashes at their ends, and the ids as written. */
  readonly paths: ReadonlyMap<string, string>
  /** What the empty path means: a path to look up, or an id as written. */
  readonly index: { readonly path: string } | { readonly id: string } | undefined
  /** The id as written that stands in for paths that are not there. */
  readonly fallback: string | undefined
}

export interface ManifestLimits {
  /** Bytes of the JSON text. The whole of it is in memory while it is read. */
  readonly sizeBytes: number
  readonly pathsMax: number
}

/** Some hundred thousand files; reading that many holds a thread for tenths of a second, which is why there is an end. */
export const standardManifestLimits: ManifestLimits = { sizeBytes: 32 * 1024 * 1024, pathsMax: 300_000 }

function malformed(message: string): Refusal {
  return refuse('malformed', 'upstream', `manifest: ${message}`)
}

type Fields = Readonly<Record<string, unknown>>

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The own member `name` of an object where it is a string: nothing inherited is ever seen. */
function textOf(fields: unknown, name: string): string | undefined {
  if (!isFields(fields) || !Object.hasOwn(fields, name)) return undefined
  const value = fields[name]
  return typeof value === 'string' ? value : undefined
}

/** Slashes at the end mean nothing, in keys and in questions. */
function trimSlashes(path: string): string {
  let end = path.length
  while (end > 0 && path.charCodeAt(end - 1) === 0x2f) end--
  return path.slice(0, end)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Keys that differ only in slashes at the end are one path: the first counts. */
function readPaths(value: unknown, pathsMax: number): Map<string, string> | undefined {
  const paths = new Map<string, string>()
  if (!isFields(value)) return paths
  for (const [key, entry] of Object.entries(value)) {
    const id = textOf(entry, 'id')
    const path = trimSlashes(key)
    if (id === undefined || paths.has(path)) continue
    if (paths.size === pathsMax) return undefined
    paths.set(path, id)
  }
  return paths
}

/** In 0.2.0 an index may have both: its id wins, which needs no look-up. */
function readIndex(value: unknown, withId: boolean): Manifest['index'] {
  const id = withId ? textOf(value, 'id') : undefined
  if (id !== undefined) return { id }
  const path = textOf(value, 'path')
  return path === undefined ? undefined : { path }
}

/** Reads a manifest from its JSON text (UTF-8 where it is bytes). */
export function parseManifest(
  source: Uint8Array | string,
  limits: ManifestLimits = standardManifestLimits,
): Manifest | Refusal {
  if (source.length > limits.sizeBytes) {
    return refuse('too-large', 'upstream', `manifest: more than ${limits.sizeBytes} bytes`)
  }
  const json = parseJson(typeof source === 'string' ? source : new TextDecoder().decode(source))
  if (!isFields(json)) return malformed('not a JSON object')
  const withId = textOf(json, 'version') === '0.2.0'
  const own = (name: string) => (Object.hasOwn(json, name) ? json[name] : undefined)
  const paths = readPaths(own('paths'), limits.pathsMax)
  if (paths === undefined) {
    return refuse('too-large', 'upstream', `manifest: more than ${limits.pathsMax} paths`)
  }
  const fallback = withId ? textOf(own('fallback'), 'id') : undefined
  return { paths, index: readIndex(own('index'), withId), fallback }
}

/** What a path leads to; `fallback`: the path itself is not there. */
export interface Resolved {
  readonly id: Id
  readonly fallback: boolean
}

/**
 * What `path` leads to, percent-decoded and without a slash at its start: compared exactly but for slashes at the end;
 * the empty one means the index. Undefined where neither it nor a fallback is there, or where the id found is none.
 */
export function resolvePath(manifest: Manifest, path: string): Resolved | undefined {
  const direct = lookUp(manifest, trimSlashes(path))
  const text = direct ?? manifest.fallback
  const id = text === undefined ? undefined : parseId(text)
  return id === undefined ? undefined : { id, fallback: direct === undefined }
}

function lookUp({ paths, index }: Manifest, path: string): string | undefined {
  if (path !== '') return paths.get(path)
  if (index === undefined) return undefined
  return 'id' in index ? index.id : paths.get(trimSlashes(index.path))
}
