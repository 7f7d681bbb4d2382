import type { Dice } from '../kit/dice.js'
import { appOf, appTag, driveOf, driveTag, fileName, fileNameTag, halfTag, named, rareTag } from './chain.js'

/** A condition on tags: any of the values will do; with `isWildcard` each stands for all that begins so. */
export interface WantedTag {
  readonly name: string
  readonly values: readonly string[]
  readonly isWildcard?: true
}

/** A question for both sides. */
export interface Question {
  readonly tags?: readonly WantedTag[]
  readonly owners?: readonly Buffer[]
  readonly recipients?: readonly Buffer[]
  readonly bundledIn?: readonly Buffer[]
  readonly ids?: readonly Buffer[]
  readonly minHeight?: number
  readonly maxHeight?: number
  readonly first: number
  readonly isAscending?: true
  /** The total number of matches is requested, too. */
  readonly counts?: true
  readonly after?: string
}

function documentOf(count: string): string {
  return `query (
  $ids: [ID!], $tags: [TagFilter!], $owners: [String!], $recipients: [String!], $bundledIn: [ID!], $block: BlockFilter,
  $first: Int, $after: String, $sort: SortOrder
) {
  transactions(ids: $ids, tags: $tags, owners: $owners, recipients: $recipients, bundledIn: $bundledIn, block: $block,
    first: $first, after: $after, sort: $sort) {
    ${count} pageInfo { hasNextPage }
    edges { cursor node {
      id tags { name value } data { size type } block { height timestamp } owner { address } bundledIn { id }
    } }
  }
}`
}

const plainDocument = documentOf('')
const countingDocument = documentOf('count')

/** As applications ask: everything that a list of results shows. */
export function documentFor({ counts }: Question): string {
  return counts === true ? countingDocument : plainDocument
}

const texts = (all: readonly Buffer[]): string[] => all.map((bytes) => bytes.toString('base64url'))

/** A question as the variables of its document. */
export function variablesOf(question: Question): Record<string, unknown> {
  const { tags, owners, recipients, bundledIn, ids, minHeight: min, maxHeight: max, first, after } = question
  return {
    first,
    ...(tags === undefined ? {} : { tags: tags.map(tagVariable) }),
    ...(owners === undefined ? {} : { owners: texts(owners) }),
    ...(recipients === undefined ? {} : { recipients: texts(recipients) }),
    ...(bundledIn === undefined ? {} : { bundledIn: texts(bundledIn) }),
    ...(ids === undefined ? {} : { ids: texts(ids) }),
    ...(min === undefined ? {} : { block: { min, max } }),
    ...(question.isAscending === true ? { sort: 'HEIGHT_ASC' } : {}),
    ...(after === undefined ? {} : { after }),
  }
}

function tagVariable({ name, values, isWildcard }: WantedTag): unknown {
  if (isWildcard !== true) return { name, values }
  return { name, values: values.map((value) => `${value}*`), match: 'WILDCARD' }
}

/** The data from which questions are drawn. */
export interface Scope {
  readonly owners: number
  readonly lastHeight: number
  /** Ids of items here and there. */
  readonly ids: readonly Buffer[]
  /** Ids of bundles here and there. */
  readonly bundles: readonly Buffer[]
}

type Draw = (dice: Dice, scope: Scope) => Question

const tag = ({ name, value }: { name: string; value: string }): WantedTag => ({ name, values: [value] })
const anyApp = (dice: Dice): WantedTag => tag(appTag(dice.zipf(200)))
const ownerOf = (dice: Dice, { owners }: Scope): number => dice.zipf(owners)
const page = 10
const half = tag(halfTag)
const rare = tag(rareTag)

function heights(dice: Dice, { lastHeight }: Scope): { minHeight: number; maxHeight: number } {
  const minHeight = 1000 + dice.below(lastHeight - 1000)
  return { minHeight, maxHeight: minHeight + dice.below(lastHeight - minHeight + 1) }
}

/** Questions by kind, drawn by the same laws as the chain. */
export const kinds: Readonly<Record<string, Draw>> = {
  newest: () => ({ first: page }),
  'one id': (dice, { ids }) => ({ ids: [ids[dice.below(ids.length)] ?? Buffer.alloc(32)], first: page }),
  'newest of a tag': (dice) => ({ tags: [anyApp(dice)], first: page }),
  'newest of an owner': (dice, scope) => ({ owners: [named(1, ownerOf(dice, scope))], first: page }),
  'newest to a recipient': (dice, scope) => ({ recipients: [named(2, ownerOf(dice, scope))], first: page }),
  'items of a bundle': (dice, { bundles }) => ({
    bundledIn: [bundles[dice.below(bundles.length)] ?? Buffer.alloc(32)],
    first: 100,
  }),
  'a drive from its oldest': (dice, scope) => {
    const owner = ownerOf(dice, scope)
    const drive = { name: driveTag, value: driveOf(owner, dice.zipf(4)) }
    return { tags: [tag(drive)], owners: [named(1, owner)], first: 100, isAscending: true }
  },
  'owner + its application + heights': (dice, scope) => {
    const owner = ownerOf(dice, scope)
    const app = tag(appTag(appOf(owner, dice)))
    return { tags: [app], owners: [named(1, owner)], ...heights(dice, scope), first: page }
  },
  'two common tags': (dice) => ({ tags: [anyApp(dice), half], first: page }),
  'half AND one of 50': () => ({ tags: [half, rare], first: 100 }),
  'one of 50 AND half': () => ({ tags: [rare, half], first: 100 }),
  'five values of a tag': (dice) => ({
    tags: [{ name: 'App-Name', values: Array.from({ length: 5 }, () => appTag(dice.zipf(200)).value) }],
    first: page,
  }),
  'wildcard on few': (dice) => ({
    tags: [{ name: fileNameTag, values: [`${fileName(dice.below(10_000))}-`], isWildcard: true }],
    first: page,
  }),
  heights: (dice, scope) => ({ ...heights(dice, scope), first: page }),
  'count of an owner': (dice, scope) => ({
    owners: [named(1, ownerOf(dice, scope))],
    first: 1,
    counts: true,
  }),
  'count of two tags': (dice) => ({ tags: [anyApp(dice), half], first: 1, counts: true }),
  'first: 1000': (dice) => ({ tags: [anyApp(dice)], first: 1000 }),
}
