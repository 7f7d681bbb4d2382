const indexShape = /^[a-z0-9-]{1,64}$/
const entryShape = /^[A-Za-z0-9._-]{1,128}$/

/** Names that some object would answer to although nobody put them there. */
const inherited = new Set(Object.getOwnPropertyNames(Object.prototype))

/** Name of an index or of a kind: a path segment and nothing else. */
export function isIndexName(name: string): boolean {
  return indexShape.test(name) && !inherited.has(name)
}

/** Id of a band or name of a file: a path segment that leads nowhere else. */
export function isEntryName(name: string): boolean {
  return entryShape.test(name) && !name.includes('..') && name !== '.' && !inherited.has(name)
}

/** What a band says it replaces: an id, a list of ids, or nothing; whatever else stands there is nothing. */
export function supersededBy(metadata: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const said = metadata !== undefined && Object.hasOwn(metadata, 'supersedes') ? metadata.supersedes : []
  const list: readonly unknown[] = Array.isArray(said) ? said : [said]
  return list.filter((id): id is string => typeof id === 'string' && isEntryName(id))
}
