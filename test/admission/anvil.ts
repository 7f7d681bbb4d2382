import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { Test } from 'tap'
import {
  type Address,
  createPublicClient,
  createTestClient,
  createWalletClient,
  defineChain,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  publicActions,
  walletActions,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { findPort } from '../../src/actor/claim.js'
import { type Usdc, usdcOf } from '../../src/admission/usdc.js'
import { fixtureJson } from '../fixture-file.js'

/** Where the stock facilitator looks for a contract that reads several things at once. */
const batch = '0xcA11bde05977b3631167028862bE2a173976CA11'

const batchAbi = parseAbi([
  'struct Call { address target; bytes callData; }',
  'function tryAggregate(bool requireSuccess, Call[] calls) payable',
])

interface Contract {
  readonly runtime: Hex
}

/** Source: test/fixture/x402/TestUsdc.sol, solc 0.8.37, cancun, optimizer with 200 runs. */
const contracts =
  fixtureJson<Record<'TestBatch' | 'TestUsdcBase' | 'TestUsdcBaseSepolia', Contract>>('x402/contracts.json')
const abi = fixtureJson<{ TestUsdcBase: { abi: readonly unknown[] } }>('x402/contracts.json').TestUsdcBase.abi

/** Path of the chain's program, or undefined where it is not installed for this machine. */
export function anvilPath(): string | undefined {
  const arch = process.arch === 'arm64' ? 'arm64' : 'amd64'
  try {
    return createRequire(import.meta.url).resolve(`@foundry-rs/anvil-linux-${arch}/bin/anvil`)
  } catch {
    return undefined
  }
}

/** A chain of one's own on loopback, with a token that behaves like USDC at USDC's address. */
export interface LocalChain {
  readonly usdc: Usdc
  readonly url: string
  /** A new account (or that of a private key) with so many smallest units, and no ether unless given. */
  account(given?: { units?: bigint; ether?: bigint; key?: Hex }): Promise<PrivateKeyAccount>
  balance(of: string): Promise<bigint>
  isUsed(payer: string, nonce: string): Promise<boolean>
  /** Sends a transaction from an account that holds ether, and waits for it. */
  write(from: PrivateKeyAccount, name: string, args: readonly unknown[]): Promise<void>
  /** The same of several calls of the token in one transaction: all of them, or none. */
  together(from: PrivateKeyAccount, name: string, calls: readonly (readonly unknown[])[]): Promise<void>
  /** A client that can read, write and sign for `account`. */
  wallet(account: PrivateKeyAccount): ReturnType<typeof walletOf>
  /** Puts the time of the next blocks forward. */
  hurry(seconds: number): Promise<void>
}

function walletOf(url: string, usdc: Usdc, account: PrivateKeyAccount) {
  const chain = chainOf(url, usdc)
  const transport = http(url, { retryCount: 0 })
  return createWalletClient({ chain, account, transport, pollingInterval: 20 }).extend(publicActions)
}

function chainOf(url: string, { chainId, network }: Usdc) {
  const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 }
  return defineChain({ id: chainId, name: network, nativeCurrency, rpcUrls: { default: { http: [url] } } })
}

/** Starts a chain, ended with the test. */
export async function startChain(t: Test, binary: string, network: Usdc['network']): Promise<LocalChain> {
  const usdc = usdcOf[network]
  const port = await findPort('127.0.0.1', 0, 'the port of the chain')
  const words = ['--host', '127.0.0.1', '--port', `${port}`, '--chain-id', `${usdc.chainId}`, '--silent']
  const child = spawn(binary, [...words, '--accounts', '1'], { stdio: 'ignore' })
  const end = (): boolean => child.kill('SIGKILL')
  process.once('exit', end)
  t.teardown(async () => {
    end()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const url = `http://127.0.0.1:${port}`
  await isUp(url, usdc, child)
  return prepared(url, usdc)
}

async function isUp(url: string, usdc: Usdc, child: ChildProcess): Promise<void> {
  const client = createPublicClient({ chain: chainOf(url, usdc), transport: http(url, { retryCount: 0 }) })
  for (let tries = 0; ; tries += 1) {
    try {
      await client.getChainId()
      return
    } catch (error) {
      if (tries > 4000 || child.exitCode !== null) throw error
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
}

async function prepared(url: string, usdc: Usdc): Promise<LocalChain> {
  const transport = http(url, { retryCount: 0 })
  const admin = createTestClient({ mode: 'anvil', chain: chainOf(url, usdc), transport })
    .extend(publicActions)
    .extend(walletActions)
  const token = usdc.address as Address
  const { TestBatch, TestUsdcBase, TestUsdcBaseSepolia } = contracts
  const code = usdc.network === 'base' ? TestUsdcBase : TestUsdcBaseSepolia
  await admin.setCode({ address: token, bytecode: code.runtime })
  await admin.setCode({ address: batch, bytecode: TestBatch.runtime })
  const wallet = (account: PrivateKeyAccount) => walletOf(url, usdc, account)
  const write = async (from: PrivateKeyAccount, functionName: string, args: readonly unknown[]) => {
    const client = wallet(from)
    const hash = await client.writeContract({ address: token, abi, functionName, args })
    await client.waitForTransactionReceipt({ hash })
  }
  const together: LocalChain['together'] = async (from, functionName, calls) => {
    const client = wallet(from)
    const calldata = calls.map((args) => [token, encodeFunctionData({ abi, functionName, args })] as const)
    const args = [true, calldata.map(([target, callData]) => ({ target, callData }))] as const
    const hash = await client.writeContract({
      address: batch,
      abi: batchAbi,
      functionName: 'tryAggregate',
      args,
    })
    await client.waitForTransactionReceipt({ hash })
  }
  const minter = privateKeyToAccount(generatePrivateKey())
  await admin.setBalance({ address: minter.address, value: 10n ** 20n })
  const read = (functionName: string, args: readonly unknown[]) =>
    admin.readContract({ address: token, abi, functionName, args })
  return {
    usdc,
    url,
    wallet,
    write,
    together,
    async account({ units = 0n, ether = 0n, key = generatePrivateKey() } = {}) {
      const account = privateKeyToAccount(key)
      if (ether > 0n) await admin.setBalance({ address: account.address, value: ether })
      if (units > 0n) await write(minter, 'mint', [account.address, units])
      return account
    },
    balance: async (of) => (await read('balanceOf', [of])) as bigint,
    isUsed: async (payer, nonce) => (await read('authorizationState', [payer, nonce])) as boolean,
    async hurry(seconds) {
      await admin.increaseTime({ seconds })
      await admin.mine({ blocks: 1 })
    },
  }
}
