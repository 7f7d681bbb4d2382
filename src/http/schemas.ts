import type { BodyShape, Schema } from './operation.js'

/** Short words for schemas of JSON (draft 2020-12). */

export const textForm: Schema = { type: 'string' }
/** A whole number of any length as text. */
export const amount: Schema = { type: 'string', pattern: '^-?[0-9]+$' }
export const wholeForm: Schema = { type: 'integer' }
export const anyNumber: Schema = { type: 'number' }
export const truth: Schema = { type: 'boolean' }
/** base64url of 32 bytes. */
export const idText: Schema = { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$' }
/** Any object: its members are of others. */
export const anyObject: Schema = { type: 'object' }

/** The schema of an array. */
export function listOf(items: Schema): Schema {
  return { type: 'array', items }
}

/** An object with these members, and perhaps others. Those of `optional` may be missing. */
export function formOf(
  required: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) }
}

/** An object whose members all look alike. */
export function mapOf(values: Schema): Schema {
  return { type: 'object', additionalProperties: values }
}

/** The schema of a value that may be null. */
export function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] }
}

/** A body in JSON, as the description of an operation names it. */
export function jsonBody(schema: Schema): BodyShape {
  return { type: 'application/json', schema }
}

export const plainText: BodyShape = { type: 'text/plain' }
