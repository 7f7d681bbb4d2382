function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch (error) {
    if (error instanceof URIError) return path
    throw error
  }
}

interface ManifestShape {
  readonly version?: string
  readonly index?: { readonly path?: string; readonly id?: string }
  readonly fallback?: { readonly id?: string }
  readonly paths?: Readonly<Record<string, { readonly id?: string }>>
}

/** The id that a path of a manifest means, as it stands in an address: itself, the index of its folder, or the fallback. */
export function manifestTarget(text: string, path: string): string | undefined {
  let manifest: ManifestShape
  try {
    manifest = JSON.parse(text) as ManifestShape
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  const { paths = {}, index, fallback } = manifest
  const at = (key: string): string | undefined => (Object.hasOwn(paths, key) ? paths[key]?.id : undefined)
  const wanted = decoded(path).replace(/\/+$/, '')
  if (wanted === '') return index?.id ?? (index?.path === undefined ? undefined : at(index.path))
  return at(wanted) ?? at(`${wanted}/`) ?? fallback?.id
}
