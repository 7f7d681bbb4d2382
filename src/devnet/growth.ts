import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import type { BlockTransaction } from '../proof/block-tree.js'
import type { ForkOptions } from './base-layer.js'
import type { BlockRow, ChainStore, NodeBlockHeader, TransactionRow, WalletChange } from './chain-store.js'
import { type BlockContents, genesisHeader, nextHeader } from './header.js'
import { layOut } from './weave.js'

/** Blocks whose hashes a transaction may be anchored to. */
const anchorsMax = 50
/** Transactions in one block, as on the network. */
const transactionsMax = 1_000

/** Makes the genesis block of an empty store. */
export function begin(store: ChainStore, weaveStart: number, timestamp: number): void {
  if (store.tip() !== undefined) return
  store.write(() => store.append({ header: genesisHeader(weaveStart, timestamp), order: [], changes: [] }))
}

/** Hashes that a transaction may be anchored to, the newest first. */
export function anchors(store: ChainStore): string[] {
  return store.lastHashes(anchorsMax)
}

/**
 * Mines one block of waiting transactions. All were valid when they came; those that no longer are (an anchor that is too
 * old, a wallet emptied by another transaction) are dropped.
 */
export function mine(store: ChainStore, timestamp: number): NodeBlockHeader {
  return store.write(() => {
    const tip = store.tip()
    if (tip === undefined) throw new Error('a chain begins with its genesis block')
    const { chosen, changes, rewardWinston } = choose(store)
    const laid = layOut(chosen)
    const contents: BlockContents = {
      timestamp,
      txs: chosen.map(({ id }) => id),
      txRoot: laid.txRoot,
      sizeBytes: laid.sizeBytes,
      rewardWinston,
      wallets: JSON.stringify(changes),
    }
    const header = nextHeader(tip.header, contents)
    store.append({ header, order: laid.placed.map(({ id }) => id), changes })
    const before = Number(tip.header.weave_size)
    for (const { id, end, size, txPath } of laid.placed) {
      const block = { height: header.height, hash: header.indep_hash }
      if (size === 0) {
        store.mined.put(id, { block })
        continue
      }
      store.ends.put(before + end, id)
      store.mined.put(id, {
        block,
        start: before + end - size + 1,
        end: before + end,
        txPath: encodeBase64url(txPath),
      })
    }
    return header
  })
}

function choose(store: ChainStore) {
  const recent = new Set(anchors(store))
  const chosen: BlockTransaction[] = []
  const changes: WalletChange[] = []
  let rewardWinston = 0n
  for (const { key, value: id } of store.waiting(transactionsMax)) {
    store.pool.remove(key)
    const row = store.transactions.get(id)
    if (row === undefined) continue
    const wallet = store.wallet(row.owner)
    const cost = costOf(row)
    if (BigInt(wallet.balance) < cost || !(row.anchor === wallet.last || recent.has(row.anchor))) {
      store.transactions.remove(id)
      continue
    }
    chosen.push({
      id,
      format: row.format,
      dataSize: row.size,
      dataRoot: Buffer.from(row.dataRoot, 'base64url'),
    })
    rewardWinston += BigInt(row.reward)
    store.credit(row.owner, -cost, id)
    changes.push({ address: row.owner, winston: String(-cost), lastBefore: wallet.last })
    if (row.quantity === '0') continue
    store.credit(row.target, BigInt(row.quantity))
    changes.push({ address: row.target, winston: row.quantity })
  }
  return { chosen, changes, rewardWinston }
}

/** What a transaction takes from its owner, in winston. */
export function costOf(row: TransactionRow): bigint {
  return BigInt(row.quantity) + BigInt(row.reward)
}

/** Undoes the last `depth` blocks in one transaction. They can still be read by their hashes, as orphans on a node. */
export function unwind(store: ChainStore, depth: number, transactions: ForkOptions['transactions']): void {
  store.write(() => {
    const orphans: Id[] = []
    for (let left = depth; left > 0; left -= 1) {
      const tip = store.tip()
      if (tip === undefined || tip.header.height === 0) throw new RangeError('the genesis block stays')
      takeBack(store, tip)
      orphans.unshift(...tip.header.txs)
    }
    if (transactions === 'lost') for (const id of orphans) store.transactions.remove(id)
    else for (const id of orphans) store.enqueue(id)
  })
}

function takeBack(store: ChainStore, { header, order, changes }: BlockRow): void {
  store.dropTip(header.height)
  for (const id of order) {
    const end = store.mined.get(id)?.end
    if (end !== undefined) store.ends.remove(end)
    store.mined.remove(id)
  }
  for (const { address, winston, lastBefore } of [...changes].reverse()) {
    store.credit(address, -BigInt(winston), lastBefore)
  }
}
