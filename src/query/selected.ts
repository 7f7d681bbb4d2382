import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  GraphQLSkipDirective,
  getDirectiveValues,
  getNamedType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'
import type { QueryContext } from './context.js'
import type { JsonText } from './json-text.js'
import { schema } from './schema.js'

/** Writes the value of a field of `source`; `below`: the selection of the value's fields, where it is an object. */
export type Writer<Source> = (
  out: JsonText,
  source: Source,
  context: QueryContext,
  below: readonly Selected[],
) => void

/** The writers of a type's fields, by their names. */
export type Writers<Source> = Readonly<Record<string, Writer<Source>>>

/** A field of the answer: what stands in front of its value, and how that is written. */
export interface Selected {
  /** With the brace or comma before it. */
  readonly label: string
  readonly write: Writer<never>
  readonly below: readonly Selected[]
}

/** A field at the root of the answer. */
export interface SelectedRoot {
  /** Its name in the answer. */
  readonly key: string
  readonly nodes: readonly [FieldNode, ...FieldNode[]]
  readonly below: readonly Selected[]
}

/** The selection of an operation, in the order of the answer. */
export interface SelectionPlan {
  readonly roots: readonly SelectedRoot[]
  /** It holds for any variables, and is so small that it may be kept. */
  readonly isLasting: boolean
}

/** Fields of a plan that is kept. Fragments in fragments make hundreds of thousands of them out of a short text. */
const keptFieldsMax = 1000

/** Writes an object: what is selected of `source`. */
export function writeObject<Source>(
  out: JsonText,
  source: Source,
  context: QueryContext,
  selected: readonly Selected[],
): void {
  if (selected.length === 0) out.text += '{'
  const { effort } = context
  for (const { label, write, below } of selected) {
    effort.writing()
    out.text += label
    // A selection of one type is only ever written with its sources.
    const writeOne = write as Writer<Source>
    writeOne(out, source, context, below)
  }
  out.text += '}'
  out.pause()
}

/**
 * The plan of a valid operation (GraphQL section 6.3.2, CollectFields, for the whole operation ahead). Every
 * type of the schema is an object, so fragments on a type always apply. `writers` by the names of the types.
 */
export function planOf(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
  writers: Readonly<Record<string, Writers<never>>>,
): SelectionPlan {
  return new Planning(document, variables, writers).plan(operation)
}

type Groups = Map<string, [FieldNode, ...FieldNode[]]>

class Planning {
  readonly #fragments = new Map<string, FragmentDefinitionNode>()
  #isFixed = true
  #fields = 0

  constructor(
    document: DocumentNode,
    private readonly variables: Readonly<Record<string, unknown>>,
    private readonly writers: Readonly<Record<string, Writers<never>>>,
  ) {
    for (const node of document.definitions) {
      if (node.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(node.name.value, node)
    }
  }

  plan({ selectionSet }: OperationDefinitionNode): SelectionPlan {
    const query = schema.getQueryType()
    const roots = [...this.#grouped([selectionSet])].map(([key, nodes]): SelectedRoot => {
      const type = fieldType(query, nodes[0])
      return { key, nodes, below: type === undefined ? [] : this.#selected(type, nodes) }
    })
    return { roots, isLasting: this.#isFixed && this.#fields <= keptFieldsMax }
  }

  /** The merged selections of the fields of one name. */
  #selected(type: GraphQLObjectType, fields: readonly FieldNode[]): Selected[] {
    const sets = fields.flatMap(({ selectionSet }) => (selectionSet === undefined ? [] : [selectionSet]))
    return [...this.#grouped(sets)].map(([key, nodes], at): Selected => {
      const label = `${at === 0 ? '{' : ','}${JSON.stringify(key)}:`
      const name = nodes[0].name.value
      this.#fields += 1
      if (name === '__typename')
        return { label: label + JSON.stringify(type.name), write: nothing, below: [] }
      const write = this.writers[type.name]?.[name]
      if (write === undefined) throw new Error(`nothing writes ${type.name}.${name}`)
      const below = fieldType(type, nodes[0])
      return { label, write, below: below === undefined ? [] : this.#selected(below, nodes) }
    })
  }

  #grouped(sets: readonly SelectionSetNode[]): Groups {
    const groups: Groups = new Map()
    const spread = new Set<string>()
    for (const set of sets) this.#collect(set, groups, spread)
    return groups
  }

  #collect(set: SelectionSetNode, groups: Groups, spread: Set<string>): void {
    for (const node of set.selections) {
      if (!this.#includes(node)) continue
      if (node.kind === Kind.FIELD) {
        const key = (node.alias ?? node.name).value
        const group = groups.get(key)
        if (group === undefined) groups.set(key, [node])
        else group.push(node)
      } else if (node.kind === Kind.INLINE_FRAGMENT) this.#collect(node.selectionSet, groups, spread)
      else if (!spread.has(node.name.value)) {
        spread.add(node.name.value)
        const fragment = this.#fragments.get(node.name.value)
        if (fragment !== undefined) this.#collect(fragment.selectionSet, groups, spread)
      }
    }
  }

  /** `@skip` and `@include`. */
  #includes(node: SelectionNode): boolean {
    if (node.directives === undefined || node.directives.length === 0) return true
    this.#isFixed = false
    const { variables } = this
    if (getDirectiveValues(GraphQLSkipDirective, node, variables)?.if === true) return false
    return getDirectiveValues(GraphQLIncludeDirective, node, variables)?.if !== false
  }
}

/** The type of a field's value, where it is an object. */
function fieldType(
  parent: GraphQLObjectType | null | undefined,
  node: FieldNode,
): GraphQLObjectType | undefined {
  const type = getNamedType(parent?.getFields()[node.name.value]?.type)
  return isObjectType(type) ? type : undefined
}

function nothing(): void {
  // All of it stands in the label.
}
