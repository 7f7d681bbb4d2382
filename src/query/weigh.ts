import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'
import type { QueryLimits } from './query-limits.js'

const connections = new Set(['transactions', 'blocks'])
const firstDefault = 10
/** Selections of introspection, those of fragments as often as they are spread: what tools ask for has some 200. */
const introspectedMax = 1000

/**
 * The error of a query that is too large, or undefined. Call it on valid documents only (fragments
 * without cycles). It ends after `fieldsMax` steps whatever the query is.
 */
export function tooMuch(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
  limits: QueryLimits,
): GraphQLError | undefined {
  const weighing = new Weighing(document, variables, limits)
  return weighing.root(operation.selectionSet)
}

class Weighing {
  readonly #fragments = new Map<string, FragmentDefinitionNode>()
  #fields = 0
  #steps = 0
  #roots = 0
  #introspected = 0

  constructor(
    document: DocumentNode,
    private readonly variables: Readonly<Record<string, unknown>>,
    private readonly limits: QueryLimits,
  ) {
    for (const node of document.definitions) {
      if (node.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(node.name.value, node)
    }
  }

  root(selections: SelectionSetNode): GraphQLError | undefined {
    return this.#weigh(selections, 1, 1)
  }

  /** `depth` of the fields in here; `times` that each of them is in the answer. */
  #weigh(selections: SelectionSetNode, depth: number, times: number): GraphQLError | undefined {
    for (const node of selections.selections) {
      this.#steps += 1
      let error: GraphQLError | undefined
      if (node.kind === Kind.FIELD) error = this.#field(node, depth, times)
      else if (node.kind === Kind.INLINE_FRAGMENT) error = this.#weigh(node.selectionSet, depth, times)
      else {
        const fragment = this.#fragments.get(node.name.value)
        if (fragment !== undefined) error = this.#weigh(fragment.selectionSet, depth, times)
      }
      if (error !== undefined) return error
      if (this.#steps > this.limits.fieldsMax) return this.#refusal(node, 'the query has too many fields')
    }
    return undefined
  }

  #field(field: FieldNode, depth: number, times: number): GraphQLError | undefined {
    const { depthMax, fieldsMax, rootsMax } = this.limits
    const name = field.name.value
    if (name.startsWith('__')) return field.selectionSet && this.#introspect(field.selectionSet)
    this.#fields += times
    if (depth === 1) this.#roots += 1
    if (this.#roots > rootsMax) return this.#refusal(field, `more than ${rootsMax} selections from the root`)
    if (depth > depthMax) return this.#refusal(field, `deeper than ${depthMax} fields`)
    if (this.#fields > fieldsMax)
      return this.#refusal(field, `the answer could have more than ${fieldsMax} fields`)
    if (field.selectionSet === undefined) return undefined
    const rows = depth === 1 && connections.has(name) ? this.#rows(field) : 1
    return this.#weigh(field.selectionSet, depth + 1, times * rows)
  }

  /** Its depth has a rule of its own in the validation. Each selection may be written for each argument of the schema. */
  #introspect(selections: SelectionSetNode): GraphQLError | undefined {
    for (const node of selections.selections) {
      this.#introspected += 1
      if (this.#introspected > introspectedMax)
        return this.#refusal(node, `more than ${introspectedMax} selections of the schema`)
      const spread = node.kind === Kind.FRAGMENT_SPREAD ? this.#fragments.get(node.name.value) : node
      const error = spread?.selectionSet && this.#introspect(spread.selectionSet)
      if (error !== undefined) return error
    }
    return undefined
  }

  #rows(field: FieldNode): number {
    const argument = field.arguments?.find(({ name }) => name.value === 'first')?.value
    let first: unknown = firstDefault
    if (argument?.kind === Kind.INT) first = Number(argument.value)
    else if (argument?.kind === Kind.VARIABLE) first = this.variables[argument.name.value] ?? firstDefault
    const rows = typeof first === 'number' ? first : firstDefault
    return Math.min(Math.max(rows, 1), this.limits.pageMax)
  }

  #refusal(node: FieldNode | { readonly kind: string }, message: string): GraphQLError {
    const at = 'name' in node ? { nodes: node as FieldNode } : {}
    return new GraphQLError(`The query asks for too much: ${message}`, {
      ...at,
      extensions: { code: 'QUERY_TOO_COMPLEX' },
    })
  }
}
