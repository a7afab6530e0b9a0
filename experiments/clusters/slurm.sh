#!/bin/bash
# Eight workers that train one model together: sbatch slurm.sh --config=NAME --data_dir=DATA --run_dir=RUN
#
# The status of the first worker, the chief, is that of the training. The job is queued again and
# resumes from the last checkpoint if the chief was preempted (143) or killed (137), or ended because
# another worker was lost (75), unless a worker failed for a reason that would recur. Slurm sends
# SIGTERM two minutes before the job's time ends, and the training then saves a checkpoint.
#SBATCH --job-name=seq2seq-train
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --requeue
#SBATCH --signal=TERM@120

port=2222
workers=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/$/:$port/" | paste -sd,)

ended=$(mktemp -u "$PWD/seq2seq-train-$SLURM_JOB_ID.XXXXXX") # .0, .1, ...: the workers' statuses

srun --kill-on-bad-exit=0 bash -c '
  trap : TERM # otherwise bash would end before Python has saved
  memattn train --workers="$0" --task_index="$SLURM_PROCID" "${@:2}"
  status=$?
  echo "$status" > "$1.$SLURM_PROCID"
  exit "$status"' "$workers" "$ended" "$@"

# A missing status means that the worker was killed or its node was lost.
status=$(cat "$ended.0" 2> /dev/null || echo 137)
lasting=$(cat "$ended".* 2> /dev/null | grep -vxE '0|75|137|143' | head -n 1)
rm -f "$ended".*
case "$status" in
  75 | 137 | 143)
    [ -z "$lasting" ] || exit "$lasting"
    scontrol requeue "$SLURM_JOB_ID"
    ;;
esac
exit "$status"
