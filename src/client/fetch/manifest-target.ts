function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch (error) {
    if (error instanceof URIError) return path
    throw error
  }
}

type Fields = Readonly<Record<string, unknown>>

/** The own member of an object; anybody can sign a manifest, with any JSON in it. */
function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Fields)[name]
    : undefined
}

function textIn(value: unknown, name: string): string | undefined {
  const found = member(value, name)
  return typeof found === 'string' ? found : undefined
}

/**
 * The id that a path of a manifest means, as it stands in an address: itself, the index of its folder, or the fallback. Manifests
 * of version 0.1.0 have no fallback, and an index by its path only.
 */
export function manifestTarget(text: string, path: string): string | undefined {
  let manifest: unknown
  try {
    manifest = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  const [paths, index] = [member(manifest, 'paths'), member(manifest, 'index')]
  const at = (key: string): string | undefined => textIn(member(paths, key), 'id')
  const isNew = textIn(manifest, 'version') === '0.2.0'
  const ofNew = (value: unknown): string | undefined => (isNew ? textIn(value, 'id') : undefined)
  const wanted = decoded(path).replace(/\/+$/, '')
  if (wanted === '') return ofNew(index) ?? at(textIn(index, 'path') ?? '')
  return at(wanted) ?? at(`${wanted}/`) ?? ofNew(member(manifest, 'fallback'))
}
