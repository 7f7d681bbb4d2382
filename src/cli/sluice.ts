#!/usr/bin/env node
import { UnusableData } from '../main/databases.js'
import { BrokenDatabase } from '../store/lmdb-check.js'
import { clientCommands } from './client-commands.js'
import { type Commands, dispatch } from './dispatch.js'

const commands: Commands = {
  start: async () => (await import('./start.js')).start,
  verify: async () => (await import('./verify-command.js')).verify,
  bands: async () => (await import('./bands-command.js')).bandsCommand,
  import: async () => (await import('./import-command.js')).bulkImport,
  adopt: async () => (await import('./adopt.js')).adopt,
  devnet: async () => (await import('./devnet-command.js')).devnet,
  index: async () => (await import('./upkeep.js')).index,
  names: async () => (await import('./names-command.js')).namesCommand,
  moderation: async () => (await import('./moderation-command.js')).moderationCommand,
  cluster: async () => (await import('./cluster-command.js')).clusterCommand,
  ledger: async () => (await import('./ledger.js')).ledgerCommand,
  reload: async () => (await import('./reload-command.js')).reloadCommand,
  rotate: async () => (await import('./rotate.js')).rotate,
  tls: async () => (await import('./tls.js')).tlsCommand,
  promotion: async () => (await import('./promotion.js')).promotionCommand,
  uploads: async () => (await import('./uploads-command.js')).uploadsCommand,
  ...clientCommands,
  completion: async () => (await import('./completion.js')).completion,
  store: async () => (await import('./store-command.js')).storeCommand,
  settings: async () => (await import('./settings-command.js')).settings,
}

const help = `sluice: a gateway, an upload service and a payment service for permanent storage

Usage: sluice COMMAND [--help]

  start      runs the services (and, on devnet, the embedded base-layer node)
  verify ID  fetches content by id and checks digest, signatures and owner
  devnet     runs the embedded base-layer node alone
  index      checks or compacts the index of the chain
  names      sets, lists and removes names that this machine knows itself
  moderation lists, blocks and releases what is not served
  bands      builds, checks and imports parts of the index that gateways give each other
  import     fills the index from Parquet bands or node answers: a folder, or what a gateway publishes
  adopt      moves over from the network's reference gateway: settings, block list, cached content
  cluster    shows and checks the machines that share a database
  ledger     checks the accounts of the payment service
  reload     has the running program read its settings and certificates again
  rotate     replaces a key: admin, signing, ledger, upload wallet, items
  tls        shows, checks and renews the certificates of HTTPS
  promotion  declares a promotion at the payment service
  uploads    shows the state of uploads, packs and seeds them again
  store      moves content to the object store and back, and shows its state
  settings   lists settings, or those with a word in them: name, default, meaning

  key        makes, shows or imports the key that uploads are signed with
  put        uploads a file, or what comes by a pipe
  deploy     uploads a folder, only what is new of it, and gives it a manifest and a name
  sync       the same whenever the folder changes (--watch)
  get        fetches content and proves it before it is written
  drive      drives with folders and files: create, ls, put, get, mkdir, mv, rename, hide, snapshot
  price      what uploads cost; balance, top-up, share, history: credits
  completion a script for a shell, which completes commands

  -h, --help     this text; sluice COMMAND --help: what the command takes
  -v, --version  the version

Exit codes: 0 done, 1 failed, 2 wrong arguments or settings, 3 not found, 4 a proof is wrong, 5 a server did not answer,
6 uploaded, but without its name.

Examples:
  sluice start                                    everything on this machine, nothing else needed
  NETWORK=mainnet sluice start                    the public network
  PORT=8080 DATA_PATH=/srv/sluice sluice start
  sluice verify ID --gateway http://127.0.0.1:3000
`

/** What is wrong with the data of this machine is printed in a line: its text says the way on. */
function messageOf(error: unknown): string | undefined {
  return error instanceof UnusableData || error instanceof BrokenDatabase ? error.message : undefined
}

process.exitCode = await dispatch({ name: 'sluice', commands, help, messageOf }, process.argv.slice(2))
