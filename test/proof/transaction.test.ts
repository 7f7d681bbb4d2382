import type { JsonWebKey } from 'node:crypto'
import Arweave from 'arweave'
import t from 'tap'
import { parseTransaction, transactionJson } from '../../src/format/transaction.js'
import { tagOf } from '../../src/format/tag.js'
import { dataTree } from '../../src/proof/data-root.js'
import { signTransaction } from '../../src/proof/sign.js'
import { verifyTransaction } from '../../src/proof/transaction.js'
import { fixtureJson, fixtureLines, fixtureNames, sound } from '../fixture-file.js'

const jwk = fixtureJson<JsonWebKey>('rsa-4096.jwk.json')
const arweave = (Arweave as unknown as { default?: typeof Arweave }).default ?? Arweave
const library = new (arweave as unknown as { default: typeof Arweave }).default({})
