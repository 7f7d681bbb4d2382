/** What can stand at a place of a query, by the schema that the server describes. */

/** Tokens of GraphQL as far as completion needs them: names, variables, texts, numbers, signs. Comments and commas are nothing. */
const token =
  /#[^\n]*|"""[\s\S]*?(?:"""|$)|"(?:\\.|[^"\\\n])*"?|\.\.\.|\$?[A-Za-z_]\w*|-?\d[\d.eE+-]*|[{}()[\]:=!@|&]/g

const named = (type) => (type.ofType ? named(type.ofType) : type.name)
export const spelled = (type) =>
  type.kind === 'NON_NULL'
    ? `${spelled(type.ofType)}!`
    : type.kind === 'LIST'
      ? `[${spelled(type.ofType)}]`
      : type.name

/** The introspection that both completion and the list of types need. */
const type = '{ kind name ofType { kind name ofType { kind name ofType { kind name } } } }'
const value = `name description type ${type}`
export const introspection = `{ __schema { queryType { name } types { name kind description
  fields { ${value} args { ${value} } } inputFields { ${value} } enumValues { name description } } } }`

const offered = ({ name, description, type }) => ({
  name,
  about: description ?? '',
  type: type ? spelled(type) : '',
})

/**
 * Walks over `text`. What is open at its end: a list of {kind: 'fields' | 'values', of, wanted}, the innermost last. `of` has the
 * members by name, `wanted` is the type of the value that comes next.
 */
function openAt(text, { types, root }) {
  const membersOf = (name, list) => new Map((types.get(name)?.[list] ?? []).map((one) => [one.name, one]))
  const open = []
  let last
  let isType = false
  for (const [word] of text.matchAll(token)) {
    const top = open.at(-1)
    if (word.startsWith('#')) continue
    if (word === '{' && (top === undefined || top.kind === 'fields')) {
      const name = isType ? last?.name : top === undefined ? root : last?.type ? named(last.type) : ''
      open.push({ kind: 'fields', of: membersOf(name, 'fields') })
    } else if (word === '{') {
      open.push({
        kind: 'values',
        of: membersOf(top.wanted ? named(top.wanted) : '', 'inputFields'),
        given: new Set(),
      })
    } else if (word === '(') {
      const args = new Map((last?.args ?? []).map((one) => [one.name, one]))
      open.push({ kind: 'values', of: args, given: new Set(), field: last })
    } else if (word === '[') open.push({ kind: 'list', wanted: top?.wanted, of: new Map() })
    else if (word === '}' || word === ')' || word === ']') {
      const closed = open.pop()
      last = word === ')' ? closed?.field : undefined
      const outer = open.at(-1)
      if (outer?.kind === 'values') outer.wanted = undefined
      continue
    } else if (word === 'on' && (top === undefined || top.kind === 'fields')) {
      isType = true
      continue
    } else if (/^[A-Za-z_]/.test(word)) {
      if (isType) last = { name: word }
      else if (top?.kind === 'fields') last = top.of.get(word)
      else if (top?.kind === 'values' && top.wanted === undefined) {
        top.given.add(word)
        last = top.of.get(word)
      } else if (top?.kind === 'values') top.wanted = undefined
      if (isType) continue
    } else if (word === ':' && top?.kind === 'values') top.wanted = last?.type
    else if (word !== ':' && top?.kind === 'values') top.wanted = undefined
    isType = false
    if (/[{([]/.test(word)) last = undefined
  }
  return open
}

/** Texts and comments are not completed. */
function isInsideText(text) {
  const words = [...text.matchAll(token)]
  const found = words.at(-1)
  if (found === undefined || found.index + found[0].length !== text.length) return false
  return found[0].startsWith('#') || (found[0].startsWith('"') && !/^"(?:\\.|[^"\\])*"$/.test(found[0]))
}

/** What may follow `text`: {prefix, offers}, where an offer is {name, about, type} and begins with the prefix. */
export function completions(text, schema) {
  const prefix = /[A-Za-z_]?\w*$/.exec(text)[0]
  const before = text.slice(0, text.length - prefix.length)
  if (isInsideText(text) || /[$@]$/.test(before)) return { prefix, offers: [] }
  const top = openAt(before, schema).at(-1)
  let offers = []
  if (top === undefined) offers = [{ name: 'query', about: 'Begins a named query, with variables', type: '' }]
  else if (top.wanted !== undefined) {
    const name = named(top.wanted)
    const values = schema.types.get(name)?.enumValues ?? []
    offers =
      name === 'Boolean'
        ? ['true', 'false'].map((name) => ({ name, about: '', type: '' }))
        : values.map(offered)
  } else if (top.kind !== 'list')
    offers = [...top.of.values()].filter(({ name }) => !top.given?.has(name)).map(offered)
  const wanted = prefix.toLowerCase()
  return {
    prefix,
    offers: offers.filter(({ name }) => name.toLowerCase().startsWith(wanted) && name !== prefix),
  }
}

/** The schema of an introspection's answer, by name. */
export function schemaOf({ __schema }) {
  return { root: __schema.queryType.name, types: new Map(__schema.types.map((one) => [one.name, one])) }
}
