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
import { JsonText } from './json-text.js'
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

/** Finds what a field of the root stands for; null: there is nothing. Throws a GraphQLError on wrong arguments. */
type Resolver = (args: never, context: QueryContext, below: readonly Selected[]) => unknown

const resolvers: Readonly<Record<string, Resolver>> = { transaction, transactions, block: blockById, blocks }
const queryFields = schema.getQueryType()?.getFields() ?? {}
/** Fields that cannot be null in the schema: where one fails, `data` is null. */
const needed = new Set(['transactions', 'blocks'])

/**
 * Carries out a valid operation, as `ExecuteRequest` of GraphQL has it (section 6), but writes JSON as it goes. What
 * failed is among the errors. Throws what is a bug.
 */
export function writeRoots(
  query: PreparedQuery,
  roots: readonly SelectedRoot[],
  context: QueryContext,
): { data: string | Promise<string>; errors: GraphQLError[] } {
  const out = new JsonText((chars) => context.effort.written(chars))
  const errors: GraphQLError[] = []
  for (const [at, root] of roots.entries()) {
    out.text += `${at === 0 ? '{' : ','}${JSON.stringify(root.key)}:`
    const before = out.mark()
    try {
      context.effort.goOn()
      writeRoot(out, query, root, context)
      out.count()
    } catch (error) {
      errors.push(locatedError(shownError(error), root.nodes, [root.key]))
      if (needed.has(root.nodes[0].name.value)) return { data: 'null', errors }
      out.goBack(before)
      out.text += 'null'
    }
  }
  out.text += roots.length === 0 ? '{}' : '}'
  const data = out.whole((arrived) => context.arrival(arrived))
  if (typeof data === 'string') return { data, errors }
  const failed = (error: unknown): string => {
    errors.push(shownError(error))
    return 'null'
  }
  return { data: data.catch(failed), errors }
}

function writeRoot(
  out: JsonText,
  query: PreparedQuery,
  { nodes, below }: SelectedRoot,
  context: QueryContext,
): void {
  const [node] = nodes
  const name = node.name.value
  const field = queryFields[name]
  const resolve = resolvers[name]
  if (field === undefined || resolve === undefined) out.text += introspected(query, nodes)
  else {
    const found = resolve(getArgumentValues(field, node, query.variables) as never, context, below)
    if (found === null) out.text += 'null'
    else writeObject(out, found, context, below)
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
