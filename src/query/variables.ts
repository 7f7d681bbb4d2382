import {
  type GraphQLError,
  type GraphQLInputType,
  getVariableValues,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
  valueFromAST,
} from 'graphql'
import { schema } from './schema.js'

export type Variables = Record<string, unknown>
type Coerce = (value: unknown) => unknown

interface Known {
  readonly name: string
  readonly coerce: Coerce
  readonly isNeeded: boolean
  /** What it is where it is not given; undefined: then it is absent. */
  readonly usual: unknown
}

const errorsMax = 20
const unfit = new Error('not of this type')

/**
 * Reads the variables of requests for one valid operation (GraphQL section 6.1.2, CoerceVariableValues). The types
 * are looked up once. What does not fit is given to the library, which states the error.
 */
export class VariableReader {
  readonly #known: readonly Known[]

  constructor(private readonly operation: OperationDefinitionNode) {
    this.#known = (operation.variableDefinitions ?? []).flatMap(({ variable, type: node, defaultValue }) => {
      const type = typeFromAST(schema, node)
      if (!isInputType(type)) return []
      const usual = defaultValue === undefined ? undefined : valueFromAST(defaultValue, type)
      return [{ name: variable.name.value, coerce: coercerOf(type), isNeeded: isNonNullType(type), usual }]
    })
  }

  read(given: Readonly<Variables>): Variables | readonly GraphQLError[] {
    try {
      return this.#read(given)
    } catch {
      // One of them does not fit.
      const definitions = this.operation.variableDefinitions ?? []
      const { errors, coerced } = getVariableValues(schema, definitions, given, { maxErrors: errorsMax })
      return errors ?? coerced
    }
  }

  #read(given: Readonly<Variables>): Variables {
    const variables: Variables = {}
    for (const { name, coerce, isNeeded, usual } of this.#known) {
      if (Object.hasOwn(given, name)) variables[name] = coerce(given[name])
      else if (usual !== undefined) variables[name] = usual
      else if (isNeeded) throw unfit
    }
    return variables
  }
}

/** Returns a function that converts JSON to a value of the type. Throws where it does not fit. */
function coercerOf(type: GraphQLInputType): Coerce {
  if (!isNonNullType(type)) {
    const some = someOf(type)
    return (value) => (value === null || value === undefined ? null : some(value))
  }
  const some = someOf(type.ofType)
  return (value) => {
    if (value === null || value === undefined) throw unfit
    return some(value)
  }
}

function someOf(type: GraphQLInputType): Coerce {
  if (isNonNullType(type)) return coercerOf(type)
  if (isListType(type)) {
    const each = coercerOf(type.ofType)
    return (value) => (Array.isArray(value) ? value.map((one) => each(one)) : [each(value)])
  }
  return isInputObjectType(type) ? objectOf(type) : (value) => leafOf(type.parseValue(value))
}

function leafOf(value: unknown): unknown {
  if (value === undefined) throw unfit
  return value
}

function objectOf(type: Extract<GraphQLInputType, { getFields: unknown }>): Coerce {
  const fields = Object.values(type.getFields()).map(({ name, type: own, defaultValue }) => ({
    name,
    usual: defaultValue,
    isNeeded: isNonNullType(own),
    coerce: coercerOf(own),
  }))
  const names = new Set(fields.map(({ name }) => name))
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unfit
    const given = value as Variables
    const object: Variables = {}
    for (const { name, usual, isNeeded, coerce } of fields) {
      if (given[name] !== undefined) object[name] = coerce(given[name])
      else if (usual !== undefined) object[name] = usual
      else if (isNeeded) throw unfit
    }
    for (const name of Object.keys(given)) if (!names.has(name)) throw unfit
    return object
  }
}
