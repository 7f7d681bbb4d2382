import { type DocumentNode, GraphQLError, Kind, type SelectionSetNode } from 'graphql'

/**
 * Bounds on the form of a query, checked before its validation. The rule that selections must not contradict each other compares
 * them in pairs, and pairs of pairs, so a short text could take minutes.
 */
export interface ShapeLimits {
  /** Fields, spreads and inline fragments in the whole text. */
  readonly selectionsMax: number
  readonly fragmentsMax: number
  /** Spreads of fragments in the whole text. */
  readonly spreadsMax: number
  /** Selections with the same name beside each other. */
  readonly sameNameMax: number
  /** Braces inside braces. */
  readonly bracesMax: number
  /**
   * Variables of an operation, directives of one node, operations of a document, arguments of one field: of
   * each.
   */
  readonly namesMax: number
}

/** Far above what real queries need. */
export const shapeLimits: ShapeLimits = {
  selectionsMax: 600,
  fragmentsMax: 20,
  spreadsMax: 60,
  sameNameMax: 8,
  bracesMax: 20,
  namesMax: 60,
}

/** The error of a document that is out of bounds, or undefined. Takes time in proportion to the document. */
export function outOfShape(document: DocumentNode, limits: ShapeLimits): GraphQLError | undefined {
  const walk = new Walk(limits)
  for (const node of document.definitions) {
    if (node.kind === Kind.FRAGMENT_DEFINITION) walk.fragments += 1
    else if (node.kind === Kind.OPERATION_DEFINITION) {
      walk.names(1 + (node.variableDefinitions?.length ?? 0) + (node.directives?.length ?? 0))
    } else return refusal('only queries and fragments are expected')
    walk.selections(node.selectionSet, 1)
    if (walk.why !== undefined) return refusal(walk.why)
  }
  if (document.definitions.length > limits.fragmentsMax + limits.namesMax)
    return refusal('too many definitions')
  return walk.fragments > limits.fragmentsMax ? refusal('too many fragments') : undefined
}

function refusal(message: string): GraphQLError {
  return new GraphQLError(`The query is out of bounds: ${message}`, {
    extensions: { code: 'QUERY_TOO_COMPLEX' },
  })
}

class Walk {
  fragments = 0
  why: string | undefined
  #selections = 0
  #spreads = 0

  constructor(private readonly limits: ShapeLimits) {}

  names(count: number): void {
    if (count > this.limits.namesMax) this.why ??= 'too many names in one place'
  }

  selections(set: SelectionSetNode, depth: number): void {
    const { bracesMax, sameNameMax, selectionsMax, spreadsMax } = this.limits
    if (depth > bracesMax) this.why ??= 'too many braces inside braces'
    this.#selections += set.selections.length
    if (this.#selections > selectionsMax) this.why ??= 'too many selections'
    if (this.why !== undefined) return
    const named = new Map<string, number>()
    for (const node of set.selections) {
      this.names(
        (node.directives?.length ?? 0) + (node.kind === Kind.FIELD ? (node.arguments?.length ?? 0) : 0),
      )
      if (node.kind === Kind.FRAGMENT_SPREAD) this.#spreads += 1
      if (node.kind === Kind.FIELD) {
        const name = (node.alias ?? node.name).value
        const count = (named.get(name) ?? 0) + 1
        named.set(name, count)
        if (count > sameNameMax) this.why ??= 'the same name too often'
      }
      if (node.kind !== Kind.FRAGMENT_SPREAD && node.selectionSet !== undefined) {
        this.selections(node.selectionSet, depth + 1)
      }
      if (this.why !== undefined) return
    }
    if (this.#spreads > spreadsMax) this.why ??= 'too many spreads of fragments'
  }
}
