import { STATUS_CODES } from 'node:http'
import type { BodyShape, Operation, Shape } from './operation.js'

/** An operation with the methods that it answers to. */
export interface Described extends Operation {
  readonly methods: readonly string[]
}

/** What a name in braces of a path, or of a parameter in the query, means. */
export interface Parameter {
  readonly description: string
  /** A value that is answered, to try it out. */
  readonly example: string
}

/** Keyed by name. */
export type PathParameters = Readonly<Record<string, Parameter>>

/** Head of the OpenAPI document of a service. */
export interface DescribedService {
  readonly title: string
  readonly description: string
  readonly release: string
  readonly parameters: PathParameters
  /** Keyed by name, as OpenAPI writes them; the first guards what only the operator may do. */
  readonly securitySchemes: Readonly<Record<string, object>>
}

const always = [405, 500, 503]

/** Names in braces. */
export function parametersIn(path: string): string[] {
  return [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = '']) => name)
}

/** What is wrong with a description (a bug); undefined where nothing is. */
export function descriptionFault(
  { path, query = [] }: Operation,
  parameters: PathParameters,
): string | undefined {
  const unknown = [...parametersIn(path), ...query].filter((name) => parameters[name] === undefined)
  return unknown.length === 0 ? undefined : `${path}: nothing says what ${unknown.join(', ')} means`
}

function contentOf({ type, schema }: BodyShape): object {
  return { content: { [type]: schema === undefined ? {} : { schema } } }
}

/** Shapes by method and path, as `POST /tx`. */
export type Shapes = Readonly<Record<string, Shape>>

/** Routes whose operations have the shapes that stand apart from them. Throws where a shape belongs to none: a bug. */
export function shaped<
  R extends { readonly about: readonly Operation[]; readonly methods: readonly string[] },
>(routes: readonly R[], shapes: Shapes): R[] {
  const left = new Set(Object.keys(shapes))
  const found = routes.map((route) => ({
    ...route,
    about: route.about.map((one) => {
      const [method = ''] = one.methods ?? route.methods
      const key = `${method} ${one.path}`
      left.delete(key)
      const shape = shapes[key]
      return shape === undefined ? one : { ...one, shape }
    }),
  }))
  if (left.size > 0) throw new Error(`nothing answers ${[...left].join(', ')}`)
  return found
}

/** The document of OpenAPI 3.1 about these operations. */
export function openApiOf(operations: readonly Described[], service: DescribedService): object {
  const { title, description, release, securitySchemes } = service
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of operations) {
    const described = operationOf(operation, service)
    const methods = operation.methods.map((method) => [method.toLowerCase(), described] as const)
    // Where two operations have one path, the first described is the one that the router uses.
    paths[operation.path] = { ...Object.fromEntries(methods), ...paths[operation.path] }
  }
  return {
    openapi: '3.1.0',
    info: { title, version: release, description },
    components: { securitySchemes },
    paths,
  }
}

function operationOf(
  { path, summary, statuses, query = [], type = 'application/json', operator, shape = {} }: Described,
  { parameters, securitySchemes }: DescribedService,
): object {
  const guard = Object.keys(securitySchemes)[0]
  const described = (name: string, place: 'path' | 'query'): object => {
    return { name, in: place, required: place === 'path', schema: { type: 'string' }, ...parameters[name] }
  }
  const all = [...new Set([...statuses, ...(operator ? [401] : []), ...always])].sort((a, b) => a - b)
  const { takes, gives, answers = {} } = shape
  const usual = { type, ...(gives === undefined ? {} : { schema: gives }) }
  const responses = all.map((status) => {
    const description = STATUS_CODES[status] ?? String(status)
    const body = status in answers ? answers[status] : status < 300 && status !== 204 ? usual : undefined
    return [status, body === undefined ? { description } : { description, ...contentOf(body) }] as const
  })
  return {
    summary,
    parameters: [
      ...parametersIn(path).map((name) => described(name, 'path')),
      ...query.map((name) => described(name, 'query')),
    ],
    ...(takes === undefined
      ? {}
      : { requestBody: { required: takes.isOptional !== true, ...contentOf(takes) } }),
    responses: Object.fromEntries(responses),
    ...(operator && guard !== undefined ? { security: [{ [guard]: [] }] } : {}),
  }
}
