import type { Shape } from '../../http/operation.js'
import {
  amount,
  anyNumber,
  anyObject,
  formOf,
  idText,
  jsonBody,
  listOf,
  mapOf,
  orNull,
  textForm,
  wholeForm,
} from '../../http/schemas.js'

/** Forms of the operators' orders to the upload and payment services, for descriptions. */

const bundle = formOf(
  {
    id: idText,
    state: { enum: ['packed', 'posted', 'seeded', 'permanent', 'dropped'] },
    sizeBytes: wholeForm,
    items: wholeForm,
    anchorHeight: wholeForm,
    createdMs: wholeForm,
    attempts: wholeForm,
    dueMs: wholeForm,
  },
  { reason: textForm, height: wholeForm, unshown: { enum: ['missing', 'silent', 'untaken'] } },
)
const item = formOf(
  {
    id: idText,
    headerSize: wholeForm,
    owner: idText,
    receivedMs: wholeForm,
    deadlineHeight: wholeForm,
    winc: amount,
    place: formOf({ file: wholeForm, offset: wholeForm, sizeBytes: wholeForm }),
  },
  { bundle: idText, offset: wholeForm, failures: wholeForm, reason: textForm, permanent: wholeForm },
)
const openUpload = formOf(
  { id: textForm, protocol: { enum: ['parts', 'resumable'] }, bytes: wholeForm, parts: wholeForm },
  { state: textForm, length: wholeForm, createdMs: wholeForm },
)
const done: Shape = { gives: formOf({ message: textForm }) }
const statementRow = formOf({
  sequence: wholeForm,
  timeMs: wholeForm,
  id: textForm,
  reason: textForm,
  reference: textForm,
  other: textForm,
  winc: amount,
  state: { enum: ['done', 'held', 'given back'] },
  note: textForm,
})

export const uploadForms = {
  overview: {
    gives: formOf({
      now: wholeForm,
      height: orNull(wholeForm),
      items: formOf({
        kept: wholeForm,
        waiting: wholeForm,
        oldestMs: orNull(wholeForm),
        oldestPaidMs: orNull(wholeForm),
      }),
      open: formOf({ open: wholeForm, bytes: wholeForm, uploads: listOf(openUpload) }),
      bundles: listOf(bundle),
      unseen: formOf({ count: wholeForm, bundles: listOf(bundle) }),
      wallet: formOf({ address: idText }, { winston: amount, atMs: wholeForm }),
      free: formOf({
        rules: anyObject,
        known: wholeForm,
        most: listOf(formOf({ name: textForm, bytes: wholeForm })),
      }),
    }),
  },
  // The answer for a bundle's own id lists its items.
  one: { gives: formOf({}, { item, bundle: anyObject }) },
  repack: done,
  reseed: done,
  trust: done,
} as const satisfies Readonly<Record<string, Shape>>

export const creditForms = {
  overview: {
    gives: formOf({
      now: wholeForm,
      pending: listOf(anyObject),
      promotions: listOf(anyObject),
      oracle: formOf({}, { failing: textForm, usd: mapOf(anyNumber), perUsd: mapOf(anyNumber) }),
      accounts: listOf(formOf({ name: textForm, winc: amount })),
      reconciliations: listOf(anyObject),
    }),
  },
  account: {
    gives: formOf(
      { wallet: textForm, names: listOf(textForm), rows: listOf(statementRow) },
      { balance: anyObject },
    ),
  },
  correct: {
    takes: jsonBody(formOf({ key: textForm, address: textForm, winc: amount, note: textForm })),
    ...done,
  },
} as const satisfies Readonly<Record<string, Shape>>
