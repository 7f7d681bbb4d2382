/** A path manifest, as it is uploaded. */
export interface PathManifest {
  readonly manifest: 'arweave/paths'
  readonly version: '0.2.0'
  readonly index: { readonly path: string }
  readonly fallback: { readonly id: string }
  readonly paths: Readonly<Record<string, { readonly id: string }>>
}

export const pathManifestType = 'application/x.arweave-manifest+json'

export interface ManifestChoice {
  /** The path that stands for the folder: `index.html`, or the first path by default. */
  readonly indexFile?: string
  /** The path for what is not there: `404.html`, or the index by default. */
  readonly fallbackFile?: string
}

/** The manifest of paths and their ids, in the order of their names so that the same folder gives the same bytes. */
export function manifestOf(ids: ReadonlyMap<string, string>, choice: ManifestChoice = {}): PathManifest {
  const names = [...ids.keys()].sort()
  const chosen =
    [choice.indexFile, 'index.html', names[0]].find((name) => name !== undefined && ids.has(name)) ?? ''
  const fallback =
    [choice.fallbackFile, '404.html', chosen].find((name) => name !== undefined && ids.has(name)) ?? ''
  const entry = (name: string): [string, { id: string }] => [name, { id: ids.get(name) ?? '' }]
  return {
    manifest: 'arweave/paths',
    version: '0.2.0',
    index: { path: chosen },
    fallback: { id: ids.get(fallback) ?? '' },
    // Not by assignment: a file may be called __proto__.
    paths: Object.fromEntries(names.map(entry)),
  }
}
