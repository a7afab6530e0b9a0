#!/bin/bash
# Eight workers that train one model together: sbatch slurm.sh --config=NAME --data_dir=D --run_dir=D
#
# The first one, the chief, says how the training ended. Preempted (143), killed (137), or ended with
# status 75 because another worker was lost, the job is queued again and goes on from the last
# checkpoint. Slurm's SIGTERM, two minutes before the end of the job's time, makes the training save.
#SBATCH --job-name=seq2seq-train
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --requeue
#SBATCH --signal=TERM@120

port=2222
workers=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/$/:$port/" | paste -sd,)

ended=$(mktemp -u "$PWD/seq2seq-train-$SLURM_JOB_ID.XXXXXX") # the chief's status, if it tells one

srun --kill-on-bad-exit=0 bash -c '
  python -m experiments.train --workers="$0" --task_index="$SLURM_PROCID" "${@:2}"
  status=$?
  [ "$SLURM_PROCID" != 0 ] || echo "$status" > "$1"
  exit "$status"' "$workers" "$ended" "$@"

# Without a status the chief was killed, or its node was lost.
status=$(cat "$ended" 2> /dev/null || echo 137)
rm -f "$ended"
case "$status" in
  75 | 137 | 143) scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit "$status"
