import {
  type DocumentNode,
  execute,
  type FieldNode,
  type GraphQLError,
  getArgumentValues,
  Kind,
  locatedError,
  type OperationDefinitionNode,
} from 'graphql'
import { blockById, blocks, blockWriters } from './block-queries.js'
import type { QueryContext } from './context.js'
import { type JsonMark, JsonText } from './json-text.js'
import { shownError } from './query-effort.js'
import { schema } from './schema.js'
import { type Selected, type SelectedRoot, type Writers, writeObject } from './selected.js'
import { transaction, transactions, transactionWriters } from './transaction-queries.js'

/** What writes the values of all types, by their names. */
export const writers: Readonly<Record<string, Writers<never>>> = { ...transactionWriters, ...blockWriters }

/** An operation with its variables, as they came and as the schema has them. */
export interface PreparedQuery {
  readonly document: DocumentNode
  readonly operation: OperationDefinitionNode
  readonly given: Readonly<Record<string, unknown>>
  readonly variables: Record<string, unknown>
}

/**
 * Finds what a field of the root stands for, at once or later; null: there is nothing. Throws or rejects with a GraphQLError, on
 * wrong arguments for example.
 */
type Resolver = (args: never, context: QueryContext, below: readonly Selected[]) => unknown

const resolvers: Readonly<Record<string, Resolver>> = { transaction, transactions, block: blockById, blocks }
const queryFields = schema.getQueryType()?.getFields() ?? {}
/** Fields that cannot be null in the schema: where one fails, `data` is null. */
const needed = new Set(['transactions', 'blocks'])
const failed = Symbol('failed')

/**
 * Carries out a valid operation, as `ExecuteRequest` of GraphQL has it (section 6), but writes JSON as it goes. What
 * failed is among the errors, as soon as the data is there. Throws or rejects with what is a bug.
 */
export function writeRoots(
  query: PreparedQuery,
  roots: readonly SelectedRoot[],
  context: QueryContext,
): { data: string | Promise<string>; errors: GraphQLError[] } {
  const writing = new RootsWriting(query, roots, context)
  return { data: writing.whole(), errors: writing.errors }
}

/** The fields of the root, one after the other. What lies in another engine is waited for before its field is written. */
class RootsWriting {
  readonly errors: GraphQLError[] = []
  readonly #out: JsonText
  #isNull = false

  constructor(
    private readonly query: PreparedQuery,
    private readonly roots: readonly SelectedRoot[],
    private readonly context: QueryContext,
  ) {
    this.#out = new JsonText((chars) => context.effort.written(chars))
  }

  whole(): string | Promise<string> {
    const waits = this.#from(0)
    return waits === undefined ? this.#data() : waits.then(() => this.#data())
  }

  #data(): string | Promise<string> {
    if (this.#isNull) return 'null'
    this.#out.text += this.roots.length === 0 ? '{}' : '}'
    const data = this.#out.whole((arrived) => this.context.arrival(arrived))
    if (typeof data === 'string') return data
    return data.catch((error: unknown) => {
      this.errors.push(shownError(error))
      return 'null'
    })
  }

  /** Writes this field and those behind it. A promise: one has to be waited for. */
  #from(first: number): Promise<void> | undefined {
    for (let at = first; at < this.roots.length && !this.#isNull; at += 1) {
      const root = this.roots[at] as SelectedRoot
      this.#out.text += `${at === 0 ? '{' : ','}${JSON.stringify(root.key)}:`
      const before = this.#out.mark()
      let found: unknown
      const isFound = this.#tried(root, before, () => {
        this.context.effort.goOn()
        this.context.share(this.roots.length - at)
        found = this.#found(root)
      })
      if (!isFound) continue
      if (found instanceof Promise) return this.#later(at, before, found)
      this.#tried(root, before, () => this.#write(root, found))
    }
    return undefined
  }

  async #later(at: number, before: JsonMark, coming: Promise<unknown>): Promise<void> {
    const root = this.roots[at] as SelectedRoot
    const found = await coming.catch((error: unknown) => {
      this.#failed(root, before, error)
      return failed
    })
    const { effort } = this.context
    let waits: Promise<void> | undefined
    effort.rest()
    // What follows a wait has a turn of its own: else all that have waited for the same would be written one after the other.
    await effort.turn(() => {
      effort.resume()
      if (found !== failed) this.#tried(root, before, () => this.#write(root, found))
      waits = this.#from(at + 1)
    })
    await waits
  }

  /** False: it has failed, and the answer says so. */
  #tried(root: SelectedRoot, before: JsonMark, act: () => void): boolean {
    try {
      act()
      return true
    } catch (error) {
      this.#failed(root, before, error)
      return false
    }
  }

  #failed({ nodes, key }: SelectedRoot, before: JsonMark, error: unknown): void {
    this.errors.push(locatedError(shownError(error), nodes, [key]))
    this.#isNull = needed.has(nodes[0].name.value)
    if (this.#isNull) return
    this.#out.goBack(before)
    this.#out.text += 'null'
  }

  /** What the field stands for; JSON where the library has written it. */
  #found({ nodes, below }: SelectedRoot): unknown {
    const [node] = nodes
    const name = node.name.value
    const field = queryFields[name]
    const resolve = resolvers[name]
    if (field === undefined || resolve === undefined) return introspected(this.query, nodes)
    return resolve(getArgumentValues(field, node, this.query.variables) as never, this.context, below)
  }

  #write({ below }: SelectedRoot, found: unknown): void {
    if (typeof found === 'string') this.#out.text += found
    else if (found === null) this.#out.text += 'null'
    else writeObject(this.#out, found, this.context, below)
    this.#out.count()
  }
}

/** Introspection and `__typename` are done by the library. */
function introspected({ document, operation, given }: PreparedQuery, nodes: readonly FieldNode[]): string {
  const alone: OperationDefinitionNode = {
    ...operation,
    selectionSet: { kind: Kind.SELECTION_SET, selections: nodes },
  }
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION)
  const result = execute({
    schema,
    document: { kind: Kind.DOCUMENT, definitions: [alone, ...fragments] },
    variableValues: given,
  })
  if (result instanceof Promise) throw new Error('nothing of the schema has to be waited for')
  const [error] = result.errors ?? []
  if (error !== undefined) throw error
  return JSON.stringify(Object.values(result.data ?? {})[0])
}
